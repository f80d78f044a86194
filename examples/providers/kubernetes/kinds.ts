import { managedColumns, managedSpec, managedStatus } from '../../../src/controllers/managed/index.ts'
import { defineResource, type Resource, Type } from '../../../src/kubernetes/index.ts'

const group = 'kubernetes.oarlock.dev'
const version = 'v1alpha1'

export const providerConfigResource = defineResource({
  ...{ group, version, kind: 'ProviderConfig', plural: 'providerconfigs', scope: 'Namespaced' },
  description: 'How to reach another cluster.',
  spec: Type.Object({
    kubeconfigSecretRef: Type.Object(
      { name: Type.String(), key: Type.Optional(Type.String({ default: 'kubeconfig' })) },
      { description: 'The Secret in the same namespace with a kubeconfig that needs no program and no file.' },
    ),
  }),
  status: Type.Object({}),
})

/** An object of the cluster of the provider, in the namespace of the Object. */
const localObject = {
  apiVersion: Type.Optional(
    Type.String({
      description: 'Default, with kind: another Object of this provider; its remote object is in status.atProvider.manifest.',
    }),
  ),
  kind: Type.Optional(Type.String()),
  name: Type.String(),
}

const manifest = Type.Object(
  {
    apiVersion: Type.String({ minLength: 1 }),
    kind: Type.String({ minLength: 1 }),
    metadata: Type.Object(
      { name: Type.Optional(Type.String()), namespace: Type.Optional(Type.String()) },
      { 'x-kubernetes-preserve-unknown-fields': true },
    ),
  },
  {
    'x-kubernetes-preserve-unknown-fields': true,
    description: 'The object, without status. Its name is by default the external name, which is the name of the Object.',
    'x-kubernetes-validations': [
      {
        rule: `self.apiVersion.contains('/') == oldSelf.apiVersion.contains('/') && (!self.apiVersion.contains('/') || self.apiVersion.split('/')[0] == oldSelf.apiVersion.split('/')[0])`,
        message: 'the group of apiVersion cannot be changed: the object that exists would be left behind; create another Object',
      },
      {
        rule: `self.kind == oldSelf.kind && self.metadata.?name == oldSelf.metadata.?name && self.metadata.?namespace == oldSelf.metadata.?namespace`,
        message:
          'kind, metadata.name and metadata.namespace cannot be changed: the object that exists would be left behind; create another Object',
      },
    ],
  },
)

export const objectResource = defineResource({
  ...{ group, version, kind: 'Object', plural: 'objects', scope: 'Namespaced' },
  description: 'An object of another cluster, kept as its manifest says.',
  spec: managedSpec(
    Type.Object({
      manifest,
      force: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Takes over fields that another field manager owns. Default: a conflict is an error.',
        }),
      ),
      patches: Type.Optional(
        Type.Array(
          Type.Object({
            from: Type.Object({
              ...localObject,
              fieldPath: Type.String({ description: 'Such as status.atProvider.manifest.spec.clusterIP.' }),
            }),
            toFieldPath: Type.String({ description: 'Such as data.address.' }),
            asText: Type.Optional(
              Type.Boolean({
                default: false,
                description: 'Copies a number or another value as its text, for fields such as data of a ConfigMap.',
              }),
            ),
          }),
          { description: 'Fields of other objects that are copied into the manifest. The Object waits until they have a value.' },
        ),
      ),
      dependsOn: Type.Optional(
        Type.Array(Type.Object(localObject), { description: 'Objects that must be ready before this one is created.' }),
      ),
      readiness: Type.Optional(
        Type.Enum(['Exists', 'Current', 'Conditions'], {
          default: 'Current',
          description:
            'When the Object is Ready. Exists: the remote object exists. Current: by the rules of kstatus, for example when a Deployment has all its replicas. Conditions: every condition of its status is True.',
        }),
      ),
      connectionDetails: Type.Optional(
        Type.Array(
          Type.Object({
            fieldPath: Type.String({ description: 'Of the remote object. Values under data of a Secret are decoded.' }),
            key: Type.String(),
          }),
          {
            description: 'Fields that are published in the Secret of writeConnectionSecretToRef.',
          },
        ),
      ),
    }),
  ),
  status: managedStatus(
    Type.Object({
      manifest: Type.Optional(
        Type.Unknown({
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          description: 'The remote object as observed, without the values of a Secret.',
        }),
      ),
    }),
  ),
  printerColumns: managedColumns,
})

export const kinds = [providerConfigResource, objectResource] as const

export type BodyOf<R> = R extends Resource<infer Body> ? Body : never
export type ObjectBody = BodyOf<typeof objectResource>
