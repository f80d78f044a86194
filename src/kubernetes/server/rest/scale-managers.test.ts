import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { ManagedFieldsEntry } from '../../object/index.ts'
import { moveToParent, moveToScale } from './scale-managers.ts'

const path = ['spec', 'replicas']
const entry = (manager: string, fieldsV1: object, more: Partial<ManagedFieldsEntry> = {}): ManagedFieldsEntry => ({
  manager,
  operation: 'Apply',
  apiVersion: 'apps/v1',
  fieldsType: 'FieldsV1',
  fieldsV1: fieldsV1 as ManagedFieldsEntry['fieldsV1'],
  ...more,
})
const replicas = { 'f:spec': { 'f:replicas': {} } }
const owner = entry('owner', { 'f:spec': { 'f:paused': {}, 'f:replicas': {} } })
const other = entry('other', { 'f:spec': { 'f:paused': {} } })

test('a Scale has the managers that own the number of replicas', () => {
  deepEqual(moveToScale([owner, other], path, 'apps/v1'), [entry('owner', replicas, { apiVersion: 'autoscaling/v1' })])
  deepEqual(moveToScale([entry('old', replicas, { apiVersion: 'apps/v1beta1' })], path, 'apps/v1'), [])
})

test('a manager that keeps the number through a Scale keeps its entry unchanged', () => {
  const scale = moveToScale([owner, other], path, 'apps/v1')
  deepEqual(moveToParent([owner, other], scale, path, 'apps/v1'), [owner, other])
})

test('a manager that loses the number keeps its other fields, and the new owner has it through the subresource', () => {
  const scale = [entry('hpa', replicas, { apiVersion: 'autoscaling/v1', operation: 'Update', subresource: 'scale' })]
  const left = entry('owner', { 'f:spec': { 'f:paused': {} } })
  const hpa = entry('hpa', replicas, { operation: 'Update', subresource: 'scale' })
  deepEqual(moveToParent([owner, other], scale, path, 'apps/v1'), [left, other, hpa])
})

test('a manager that owned only the number is removed, for any path of a custom kind', () => {
  const deep = ['spec', 'count', 'wanted']
  const only = entry('owner', { 'f:spec': { 'f:count': { 'f:wanted': {} } } })
  deepEqual(moveToParent([only], [], deep, 'apps/v1'), [])
  const scale = [entry('hpa', replicas, { apiVersion: 'autoscaling/v1', subresource: 'scale' })]
  deepEqual(moveToParent([], scale, deep, 'apps/v1'), [
    entry('hpa', { 'f:spec': { 'f:count': { 'f:wanted': {} } } }, { subresource: 'scale' }),
  ])
})
