import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { type HistoryFacts, intervalSeries } from '../../protocol/index.ts'
import { theme } from '../theme.ts'
import { formatDuration } from './format.ts'

export type ChartDefinition<Name extends string = string> = {
  readonly title: string
  readonly series: readonly { readonly name: Name; readonly label: string; readonly colour: string }[]
  readonly format: (value: number) => string
  /** The axis reaches this value, also where all values are lower. Default 1. */
  readonly atLeast?: number
}

const isSum = new Set<string>(intervalSeries)
const heightPx = 110
/** Times of a shorter history have seconds. */
const shortSeconds = 600

/** The charts that have a series. */
export function ChartList({ charts, facts }: { readonly charts: readonly ChartDefinition[]; readonly facts: HistoryFacts }) {
  if (facts.timesMs.length < 2)
    return <p class="hint">The history begins when the control plane is started first: the first values follow within a minute.</p>
  const shown = charts.filter(({ series }) => series.some(({ name }) => facts.series[name]))
  return (
    <>
      {shown.map(chart => (
        <Chart key={`${chart.title} ${theme.value}`} chart={chart} facts={facts} />
      ))}
    </>
  )
}

function Chart({
  chart: { title, series, format, atLeast = 1 },
  facts,
}: {
  readonly chart: ChartDefinition
  readonly facts: HistoryFacts
}) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const shown = series.filter(({ name }) => facts.series[name])
  const data = [facts.timesMs.map(ms => ms / 1_000), ...shown.map(({ name }) => facts.series[name])] as uPlot.AlignedData
  useEffect(() => {
    const element = place.current as HTMLDivElement
    const draw = () => {
      plot.current?.destroy()
      plot.current = new uPlot(optionsOf(element, shown, format, atLeast), data, element)
    }
    draw()
    const observer = new ResizeObserver(([entry]) =>
      plot.current?.setSize({ width: (entry as ResizeObserverEntry).contentRect.width, height: heightPx }),
    )
    observer.observe(element)
    const scheme = window.matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', draw)
    return () => {
      observer.disconnect()
      scheme.removeEventListener('change', draw)
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [shown.length])
  useEffect(() => plot.current?.setData(data), [facts])
  const values = `${shown.every(({ name }) => isSum.has(name)) ? '' : 'highest '}in ${formatDuration(facts.everyMs)}`
  const latest = shown.map(({ name, label }) => `${label} ${format(facts.series[name]?.findLast(value => value !== null) ?? 0)}`).join(', ')
  return (
    <figure class="chart">
      <figcaption>
        <span>
          <b>{title}</b> {values}
        </span>
        <span class="legend">
          {shown.map(({ name, label, colour }) => (
            <span key={name}>
              <span class="dot" style={{ background: `var(${colour})` }} aria-hidden="true" /> {label}{' '}
              <b>{format(facts.series[name]?.findLast(value => value !== null) ?? 0)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={place} class="plot" role="img" aria-label={`${title}, ${values}: ${latest}`} />
    </figure>
  )
}

function optionsOf(
  element: HTMLElement,
  series: ChartDefinition['series'],
  format: (value: number) => string,
  atLeast: number,
): uPlot.Options {
  const styles = getComputedStyle(element)
  // A canvas knows no light-dark(): the browser computes the colour of an element.
  const probe = element.appendChild(document.createElement('span'))
  const colour = (name: string) => {
    probe.style.color = `var(${name})`
    return getComputedStyle(probe).color
  }
  const [grid, text] = [colour('--line'), colour('--dim')]
  const lines = series.map(one => ({ stroke: colour(one.colour), width: 1.5, points: { show: false } }))
  probe.remove()
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: `11px ${styles.fontFamily}` }
  return {
    width: element.clientWidth,
    height: heightPx,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, __, max) => [0, Math.max(atLeast, max * 1.1)] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 22,
        // A time with seconds is 50 px wide.
        space: 70,
        values: (_, times) => {
          const isShort = (times.at(-1) ?? 0) - (times[0] ?? 0) < shortSeconds
          return times.map(seconds => new Date(seconds * 1_000).toLocaleTimeString('en-GB').slice(0, isShort ? 8 : 5))
        },
      },
      { ...axis, size: 48, space: 28, values: (_, values) => values.map(format) },
    ],
    series: [{}, ...lines],
  }
}
