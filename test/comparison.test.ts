/** docs/comparison.md: every statement about another tool has a source with a date, and every one about Oarlock a page. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const page = readFileSync('docs/comparison.md', 'utf8')
const tools = ['Oarlock', 'Atlantis', 'Terrakube', 'Spacelift', 'tofu-controller', 'Burrito', 'Pulumi operator']
const rows = [...page.matchAll(/^\| (?!\|)([^|]+) \|(.*)\|$/gm)].map(([, point = '', rest = '']) => ({
  point,
  cells: rest.split(' | ').map(cell => cell.trim()),
}))
const definitions = new Map([...page.matchAll(/^\[\^([\w-]+)\]: (.*)$/gm)].map(([, key = '', text = '']) => [key, text]))
const references = new Set([...page.matchAll(/\[\^([\w-]+)\](?!:)/g)].map(([, key = '']) => key))

test('every table compares the same tools', () => {
  const headers = [...page.matchAll(/^\| \| (.*) \|$/gm)].map(([, names = '']) => names.split(' | '))
  ok(headers.length >= 4)
  for (const header of headers) deepEqual(header, tools)
  for (const { point, cells } of rows) equal(cells.length, tools.length, point)
  ok(rows.length >= 25)
})

test('every cell about another tool has a source, or states that none was tried or found', () => {
  const without = rows.flatMap(({ point, cells }) =>
    cells
      .slice(1)
      .flatMap((cell, index) => (/\[\^[\w-]+\]|\bnot tried\b|\bunknown\b/.test(cell) ? [] : [`${tools[index + 1]}: ${point}: ${cell}`])),
  )
  deepEqual(without, [])
})

test('every cell about Oarlock links to a page', () => {
  const without = rows.filter(({ cells }) => !/\]\(\.{0,2}[\w./-]+(\.md)?(#[\w-]+)?\)/.test(cells[0] ?? '')).map(({ point }) => point)
  deepEqual(without, [])
})

test('every footnote that is used is defined once, with an address at a fixed version and the date on which it was read', () => {
  deepEqual(
    [...references].filter(key => !definitions.has(key)),
    [],
  )
  deepEqual(
    [...definitions.keys()].filter(key => !references.has(key)),
    [],
  )
  equal(page.match(/^\[\^/gm)?.length, definitions.size)
  for (const [key, text] of definitions)
    match(text, /<https:\/\/github\.com\/[\w.-]+\/[\w.-]+\/(blob|tree|commits)\/[0-9a-f]{7,40}[^>]*> \(.+; read \d{4}-\d{2}-\d{2}\)$/, key)
})

test('a source belongs to the tool of its column', () => {
  const prefixes = ['', 'at-', 'tk-', 'sp-', 'tf-', 'bu-', 'pu-']
  for (const { point, cells } of rows)
    for (const [index, cell] of cells.entries())
      for (const [, key = ''] of cell.matchAll(/\[\^([\w-]+)\]/g))
        ok(key.startsWith(prefixes[index] ?? '-'), `${tools[index]}: ${point}: ${key}`)
})
