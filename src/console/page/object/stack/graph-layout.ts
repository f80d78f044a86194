import type { StackGraph } from '../../../protocol/index.ts'

export type Placed = { readonly name: string; readonly x: number; readonly y: number }
export type Layout = {
  readonly width: number
  readonly height: number
  readonly nodes: ReadonlyMap<string, Placed>
  /** From what is needed to what needs it, as SVG paths. */
  readonly edges: readonly { readonly key: string; readonly path: string; readonly isOfOutputs: boolean }[]
}

export const nodeWidth = 168
export const nodeHeight = 42
const gapX = 64
const gapY = 14
const margin = 2

/** Places each layer in a column, from what is needed to what needs it. Within a column the order is that of the neighbours before, so that few edges cross. */
export function layoutGraph({ nodes, edges }: Pick<StackGraph, 'nodes' | 'edges'>): Layout {
  const layers = [...new Set(nodes.map(({ layer }) => layer))].sort((a, b) => a - b)
  const position = new Map<string, number>()
  const columns = layers.map(layer => {
    const weight = (name: string) => {
      const before = edges.filter(({ from }) => from === name).flatMap(({ to }) => position.get(to) ?? [])
      return before.length === 0 ? Number.POSITIVE_INFINITY : before.reduce((sum, each) => sum + each, 0) / before.length
    }
    const names = nodes.filter(node => node.layer === layer).map(({ name }) => ({ name, weight: weight(name) }))
    const sorted = names.sort((a, b) => (a.weight === b.weight ? (a.name < b.name ? -1 : 1) : a.weight - b.weight)).map(({ name }) => name)
    for (const [index, name] of sorted.entries()) position.set(name, index - sorted.length / 2)
    return sorted
  })
  const highest = Math.max(1, ...columns.map(({ length }) => length))
  const height = highest * (nodeHeight + gapY) - gapY
  const placed = new Map<string, Placed>()
  for (const [column, names] of columns.entries()) {
    const top = (height - (names.length * (nodeHeight + gapY) - gapY)) / 2
    for (const [row, name] of names.entries())
      placed.set(name, { name, x: margin + column * (nodeWidth + gapX), y: margin + top + row * (nodeHeight + gapY) })
  }
  return {
    width: layers.length * (nodeWidth + gapX) - gapX + 2 * margin,
    height: height + 2 * margin,
    nodes: placed,
    edges: edges.flatMap(({ from, to, via }) => {
      const [source, target] = [placed.get(to), placed.get(from)]
      if (!source || !target) return []
      const [x1, y1, x2, y2] = [source.x + nodeWidth, source.y + nodeHeight / 2, target.x, target.y + nodeHeight / 2]
      const bend = Math.max(24, Math.abs(x2 - x1) / 2)
      return [
        {
          key: `${from} ${to}`,
          path: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
          isOfOutputs: via.includes('outputs'),
        },
      ]
    }),
  }
}
