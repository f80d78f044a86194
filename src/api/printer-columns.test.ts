import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { oarlockResources } from './index.ts'

/** Of columns with usual contents; `kubectl` and `oarlock` separate columns by three spaces. */
const maxWidth = 80
const gap = 3

/** By kind and column: a cell that is as long as usual ones are. A column without one contains what is shorter than its title. */
const usual: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Stack: { Name: 'billing-production', Reason: 'WorkerStartFailed', Approval: 'Pending', Age: '120d' },
  Run: { Name: 'billing-production-3f2a1-123', Type: 'Destroy', Phase: 'Succeeded', Reason: 'InvalidConfiguration', Age: '120d' },
  Worker: { Name: 'per-stack-3f2a1-123', Phase: 'Starting', Reason: '<none>', Run: 'shop/network-3f2a1-12', Age: '45m' },
  WorkerPool: { Name: 'per-stack', Ready: 'True', Age: '120d', Problem: 'shop: QuotaExceeded' },
  Tenant: { Name: 'platform-a', Ready: 'False', Max: '<none>', Age: '120d' },
}

type Column = { readonly name: string; readonly jsonPath: string; readonly priority?: number }
const kinds = oarlockResources.map(resource => {
  const { spec } = resource.toCrd() as unknown as { spec: { versions: { additionalPrinterColumns: Column[] }[] } }
  return { kind: resource.kind, printerColumns: spec.versions[0]!.additionalPrinterColumns }
})

test('the default columns of each kind fit into 80 characters with usual names', () => {
  for (const { kind, printerColumns } of kinds) {
    const cells = usual[kind]
    ok(cells, `${kind} has no usual cells here`)
    const titles = ['Name', ...printerColumns.filter(({ priority }) => !priority).map(({ name }) => name)]
    for (const column of Object.keys(cells)) ok(titles.includes(column), `${kind} has no default column ${column}`)
    const width = titles.reduce((sum, title) => sum + Math.max(title.length, cells[title]?.length ?? 0) + gap, -gap)
    ok(width <= maxWidth, `${kind} is ${width} wide`)
  }
})

test('no kind uses the title Reason for anything but the reason of a status', () => {
  for (const { printerColumns } of kinds)
    for (const { name, jsonPath } of printerColumns) if (name === 'Reason') equal(jsonPath.startsWith('.status.'), true, jsonPath)
})
