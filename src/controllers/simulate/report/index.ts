/** report: results of a simulation for people: `chart.ts` for a terminal, `draw-svg.ts` for a page. Pure. */
export { chartLines, summaryLine } from './chart.ts'
export { drawSvg } from './draw-svg.ts'
export { formatCount, formatPrice, formatRoundedDuration } from './format.ts'
