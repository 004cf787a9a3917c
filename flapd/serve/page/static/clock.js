// The agent's clock: that of whoever looks may be minutes off.

const LEAST_MS = 2000; // less is the way of the page from the agent to here
const skew = Date.parse(document.body.dataset.now) - Date.now();

export const now = () => Date.now() + (Math.abs(skew) > LEAST_MS ? skew : 0);
