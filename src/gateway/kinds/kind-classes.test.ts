import { deepEqual } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { clusterKindClasses, systemNamespaces } from './kind-classes.ts'

const page = readFileSync(join(import.meta.dirname, '..', '..', '..', 'docs', 'partitions.md'), 'utf8')

test('docs/partitions.md has the class of each cluster-scoped kind, and the system namespaces', () => {
  const documented = [...page.matchAll(/^\| `([a-z0-9.]+)` \| (replicated|owned) \|$/gm)].map(([, kind = '', kindClass = '']) => [
    kind,
    kindClass,
  ])
  deepEqual(Object.fromEntries(documented), clusterKindClasses)
  const sentence = /^The namespaces (.+) may exist in every partition/m.exec(page)?.[1] ?? ''
  deepEqual(
    [...sentence.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name),
    systemNamespaces,
  )
})
