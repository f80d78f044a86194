/** A state of one resource with many attributes, which takes long to compare: 600,000 of them are 15 MiB and 3 s. */
export const largeState = (attributes: number, value: string): string =>
  JSON.stringify({
    ...{ version: 4, terraform_version: '1.12.6', serial: 1, lineage: 'a', outputs: {} },
    resources: [
      {
        ...{ mode: 'managed', type: 'a', name: 'b', provider: 'provider["registry.terraform.io/a/b"]' },
        instances: [
          {
            attributes: Object.fromEntries(Array.from({ length: attributes }, (_, index) => [`k${index}`, `${value} ${index}`])),
            sensitive_attributes: [],
          },
        ],
      },
    ],
  })
