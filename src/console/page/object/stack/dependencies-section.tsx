import { type GraphEdge, type StackGraph, stateTones } from '../../../protocol/index.ts'
import { Badge } from '../../parts/badge.tsx'
import { formatCount } from '../../parts/format.ts'
import { PartView, stackPath, usePart } from '../../parts/part.tsx'
import { pathTo } from '../../router.ts'
import { layoutGraph, nodeHeight, nodeWidth } from './graph-layout.ts'
import type { SectionProps } from './section-props.ts'

export function DependenciesSection(props: SectionProps) {
  const { namespace, name, object } = props
  const part = usePart<StackGraph>(stackPath(props, 'graph'), object.metadata?.resourceVersion ?? '')
  return (
    <section class="panel" aria-labelledby="graph-title">
      <h2 id="graph-title">Dependencies</h2>
      <PartView part={part} what="The dependencies">
        {graph =>
          graph.nodes.length <= 1 ? (
            <p class="hint">
              The Stack needs no other Stack, and none needs it: spec.dependsOn and stackRef in spec.variablesFrom make dependencies.
            </p>
          ) : (
            <>
              <Graph graph={graph} namespace={namespace} name={name} />
              {graph.problem !== undefined && <p class="hint">Not all is shown: {graph.problem}.</p>}
              {graph.more > 0 && <p class="hint">{formatCount(graph.more, 'more Stack')} are further away.</p>}
              <List graph={graph} namespace={namespace} name={name} />
            </>
          )
        }
      </PartView>
    </section>
  )
}

type Props = { readonly graph: StackGraph; readonly namespace: string; readonly name: string }

/** For eyes and pointers: the list below has the same for others. */
function Graph({ graph, namespace, name }: Props) {
  const layout = layoutGraph(graph)
  return (
    <div class="graph">
      <svg width={layout.width} height={layout.height} viewBox={`0 0 ${layout.width} ${layout.height}`} aria-hidden="true">
        {layout.edges.map(({ key, path, isOfOutputs }) => (
          <path key={key} class={isOfOutputs ? 'edge' : 'edge dashed'} d={path} />
        ))}
        {graph.nodes.map(node => {
          const { x, y } = layout.nodes.get(node.name) ?? { x: 0, y: 0 }
          const tone = node.state === undefined ? 'idle' : stateTones[node.state]
          return (
            <a key={node.name} href={pathTo(['stacks', namespace, node.name, 'dependencies'])} tabindex={-1}>
              <g class={`node ${tone} ${node.name === name ? 'current' : ''}`} transform={`translate(${x} ${y})`}>
                <rect width={nodeWidth} height={nodeHeight} rx={6} />
                <circle cx={15} cy={nodeHeight / 2} r={5} />
                <text x={28} y={nodeHeight / 2 + 4}>
                  {shortened(node.name)}
                </text>
                <title>{node.name}</title>
              </g>
            </a>
          )
        })}
      </svg>
    </div>
  )
}

function List({ graph: { nodes, edges }, namespace, name }: Props) {
  const names = (found: readonly GraphEdge[], end: 'from' | 'to') =>
    found.map(edge => (
      <span key={edge[end]}>
        <a href={pathTo(['stacks', namespace, edge[end], 'dependencies'])}>{edge[end]}</a>
        {edge.via.includes('outputs') && <span class="dim"> (outputs)</span>}{' '}
      </span>
    ))
  return (
    <ul class="plain rows dependencies">
      {nodes.map(node => {
        const needs = edges.filter(({ from }) => from === node.name)
        const neededBy = edges.filter(({ to }) => to === node.name)
        return (
          <li key={node.name}>
            {node.name === name ? <strong>{node.name}</strong> : <a href={pathTo(['stacks', namespace, node.name])}>{node.name}</a>}
            <span>
              {node.state === undefined ? (
                <span class="dim">{node.problem}</span>
              ) : (
                <Badge value={node.state} tone={stateTones[node.state]} />
              )}
            </span>
            <span>{needs.length > 0 && <>needs {names(needs, 'to')}</>}</span>
            <span>{neededBy.length > 0 && <>needed by {names(neededBy, 'from')}</>}</span>
          </li>
        )
      })}
    </ul>
  )
}

const maxChars = 19
const shortened = (name: string) => (name.length > maxChars ? `${name.slice(0, maxChars - 1)}…` : name)
