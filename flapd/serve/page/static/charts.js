// Draws what the server worked out of samples: one plot a chart, all on one clock.

const COLOURS = ["--sent", "--received", "--outage", "--stall", "--fault", "--warn", "--good", "--quiet"];
const HEIGHT = 130;
const sync = uPlot.sync("samples");

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function utc(seconds, digits) {
  return new Date(seconds * 1000).toISOString().slice(11, 19 + (digits ? digits + 1 : 0));
}

function ticks(plot, splits) {
  const digits = splits.length > 1 && splits[1] - splits[0] < 1 ? 1 : 0;
  return splits.map((one) => utc(one, digits));
}

function line(series, place, chart) {
  return {
    label: series.label,
    stroke: colour(COLOURS[place % COLOURS.length]),
    width: 1.5,
    dash: place % 2 ? [5, 3] : undefined, // lines differ in more than their colour
    paths: chart.is_stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
    spanGaps: true,
    points: { show: false },
    value: (_plot, value) => (value === null ? "-" : `${value} ${chart.unit}`.trim()),
  };
}

// When the port was down, behind the lines.
function shade(plot, band) {
  const [left, right] = band.map((at) => plot.valToPos(at, "x", true));
  plot.ctx.save();
  plot.ctx.globalAlpha = 0.18;
  plot.ctx.fillStyle = colour("--outage");
  const { left: first, top, width, height } = plot.bbox;
  plot.ctx.beginPath();
  plot.ctx.rect(first, top, width, height);
  plot.ctx.clip();
  plot.ctx.fillRect(left, top, Math.max(2, right - left), height);
  plot.ctx.restore();
}

function options(chart, width, span, bands) {
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px sans-serif" };
  return {
    title: chart.unit ? `${chart.title} (${chart.unit})` : chart.title,
    width,
    height: HEIGHT,
    hooks: { drawClear: [(plot) => bands.forEach((band) => shade(plot, band))] },
    cursor: { sync: { key: sync.key }, drag: { x: true, y: false } },
    scales: { x: { time: false, range: (_plot, low, high) => whole(chart, low, high, span) }, y: { range: (_plot, low, high) => bounds(low, high) } },
    axes: [{ ...axis, values: ticks, space: 90, size: 24 }, { ...axis, size: 64 }],
    series: [
      { label: "UTC", value: (_plot, value) => (value === null ? "-" : utc(value, 3)) },
      ...chart.series.map((one, place) => line(one, place, chart)),
    ],
  };
}

// All charts share one span until somebody zooms in.
function whole(chart, low, high, span) {
  return low === null || (low === chart.times[0] && high === chart.times.at(-1)) ? span : [low, high];
}

function isZoomed(area) {
  return area.plots?.some((plot) => plot.scales.x.min !== area.span[0]);
}

function bounds(low, high) {
  if (low === null) return [0, 1];
  return [Math.min(0, low), high > low || high > 0 ? high * 1.08 : low + 1];
}

function draw(area) {
  const charts = JSON.parse(area.dataset.charts);
  const times = charts.flatMap((chart) => [chart.times[0], chart.times.at(-1)]);
  const span = [Math.min(...times), Math.max(...times)];
  const bands = JSON.parse(area.dataset.bands);
  area.span = span;
  area.plots?.forEach((plot) => plot.destroy());
  area.plots = charts.map((chart) => {
    const data = [chart.times, ...chart.series.map((one) => one.values)];
    return new uPlot(options(chart, area.clientWidth, span, bands), data, area);
  });
  area.setAttribute("role", "img");
  const names = charts.map((chart) => chart.title).join("; ");
  area.setAttribute("aria-label", `Charts: ${names}. The table after them has the counters that moved.`);
}

function drawAll() {
  document.querySelectorAll("[data-charts]").forEach(draw);
}

drawAll();
document.addEventListener("charts", (event) => isZoomed(event.target) || draw(event.target));
addEventListener("resize", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
