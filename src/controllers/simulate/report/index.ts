/**
 * @module simulate/report: results of simulations for people. Pure.
 * In: results of `recommend.ts` and `simulate-fleet.ts`. Out: text for a terminal (`chart.ts`) and an SVG (`draw-svg.ts`).
 */
export { chartLines, summaryLine } from './chart.ts'
export { drawSvg } from './draw-svg.ts'
export { formatCount, formatPrice, formatRoundedDuration } from './format.ts'
