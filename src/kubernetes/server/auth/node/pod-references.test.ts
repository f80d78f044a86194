import { equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '../../../object/index.ts'
import { podReferences, volumeSecrets } from './pod-references.ts'

const pod = (spec: object) => ({ metadata: { name: 'web', namespace: 'shop' }, spec }) as unknown as KubeObject

test('a Pod refers to the objects of its volumes, variables, image and account, and to nothing else', () => {
  const { secrets, configMaps, claims, serviceAccount, tokenAudiences } = podReferences(
    pod({
      serviceAccountName: 'runner',
      imagePullSecrets: [{ name: 'pull' }],
      initContainers: [{ envFrom: [{ secretRef: { name: 'env' } }, { configMapRef: { name: 'env-map' } }] }],
      containers: [
        {
          env: [
            { valueFrom: { secretKeyRef: { name: 'key', key: 'a' } } },
            { valueFrom: { configMapKeyRef: { name: 'key-map', key: 'a' } } },
          ],
        },
      ],
      volumes: [
        { name: 'a', secret: { secretName: 'volume' } },
        { name: 'b', configMap: { name: 'volume-map' } },
        { name: 'c', persistentVolumeClaim: { claimName: 'data' } },
        { name: 'scratch', ephemeral: {} },
        { name: 'd', csi: { driver: 'x', nodePublishSecretRef: { name: 'csi' } } },
        {
          name: 'e',
          projected: {
            sources: [{ secret: { name: 'part' } }, { configMap: { name: 'part-map' } }, { serviceAccountToken: { audience: 'vault' } }],
          },
        },
      ],
    }),
  )
  equal([...secrets].sort().join(), 'csi,env,key,part,pull,volume')
  equal([...configMaps].sort().join(), 'env-map,key-map,part-map,volume-map')
  equal([...claims].sort().join(), 'data,web-scratch')
  equal(serviceAccount, 'runner')
  equal([...tokenAudiences].join(), 'vault')
})

test('the driver of a volume gets the Secrets of the node, not those of its controller', () => {
  const csi = {
    nodeStageSecretRef: { name: 'stage', namespace: 'storage' },
    nodePublishSecretRef: { name: 'publish' },
    controllerPublishSecretRef: { name: 'controller', namespace: 'storage' },
  }
  const found = [...volumeSecrets(pod({ claimRef: { namespace: 'shop', name: 'data' }, csi }))].sort().join()
  match(found, /^shop\/publish,storage\/stage$/)
})
