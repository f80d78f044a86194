import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { userHeaders } from './user-headers.ts'

test('a user is named with a header for each group and value, as a kube-apiserver reads them', () => {
  const extra = { 'example.org/Team': ['blue', 'a,b', '100%', 'system:x/y'] }
  deepEqual(userHeaders({ name: 'ann', groups: ['dev', 'ops'], uid: 'u-1', extra }), {
    'x-remote-user': 'ann',
    'x-remote-group': ['dev', 'ops'],
    'x-remote-uid': 'u-1',
    'x-remote-extra-example.org%2f%54eam': ['blue', 'a%2Cb', '100%25', 'system:x/y'],
  })
})

test('a name that a header cannot carry is rejected', () => {
  for (const user of [
    { name: 'ann\nX-Remote-Group: system:masters', groups: [] },
    { name: 'ann', groups: ['dev,system:masters'] },
    { name: ' ann', groups: [] },
  ])
    throws(() => userHeaders(user), /cannot be sent to a partition/)
})
