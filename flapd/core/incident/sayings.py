"""Sayings: the sentence of an account that says its verdict; each belongs to one verdict alone."""

from flapd.model.incident import VERDICTS, Verdict

A_PAUSE = "It turned out to be a pause that the job takes for itself."
NOTHING = "It turned out to be none of its own: the job was over, or another error came first."

CAUSED = "So the flap caused it."
LIKELY = "So the flap most likely caused it."
BESIDE = "So the flap stands beside it, and most likely is not its cause."
IN_ITS_PLACE = "So the flap stands where its cause would, and is not known to do such a thing."
UNFELT = "Traffic of the job was watched and did not stop: the flap cost it nothing visible."
ELSEWHERE = "No port of this node went down in that time: the cause is elsewhere."
ELSEWHERE_IN_FLEET = (
    "No port of the job that is seen here went down in that time: the cause is elsewhere, "
    "perhaps between switches."
)
NOT_FABRIC = "So it was not the fabric."
ALL_CLEAN = "All of the job is on this node, and none of its ports went down: not the fabric."
NO_JOB = "No job used the port: the flap hurt nobody that flapd knows of."
UNSEEN = "What would tell the cause could not be seen."
MODEL_ONLY = "Nobody would have seen whether the job stood still: what follows is the model's."

SAYINGS: dict[Verdict, frozenset[str]] = {
    "caused": frozenset({CAUSED}),
    "likely": frozenset({LIKELY}),
    "coincident": frozenset({BESIDE, IN_ITS_PLACE, UNFELT}),
    "elsewhere": frozenset({ELSEWHERE, ELSEWHERE_IN_FLEET}),
    "not_fabric": frozenset({NOT_FABRIC, ALL_CLEAN, A_PAUSE}),
    "no_job": frozenset({NO_JOB}),
    "unknown": frozenset({UNSEEN, MODEL_ONLY, NOTHING}),
}


def verdicts_in(explanation: tuple[str, ...]) -> list[Verdict]:
    """Which verdicts an account says, in its order."""
    return [name for said in explanation for name in VERDICTS if said in SAYINGS[name]]
