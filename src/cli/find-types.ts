import type { Client } from '../kubernetes/client/index.ts'
import { describeResource, type Resource } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { suggest } from './suggest.ts'

type ApiResource = {
  name: string
  singularName?: string
  kind: string
  namespaced: boolean
  shortNames?: string[]
  categories?: string[]
  verbs?: string[]
}
/** A kind with all its names: plural, singular, short, and each with its group. */
export type KnownType = { resource: Resource; names: string[]; categories: string[] }

/** Every kind of the server in its preferred version, without subresources. */
export async function discoverTypes(client: Client): Promise<KnownType[]> {
  const get = async <T>(path: string) => (await (await client.request({ method: 'GET', path })).json()) as T
  const { groups } = await get<{ groups: { preferredVersion: { groupVersion: string } }[] }>('/apis')
  const lists = await Promise.all(
    [
      { path: '/api/v1', groupVersion: 'v1' },
      ...groups.map(({ preferredVersion: { groupVersion } }) => ({ path: `/apis/${groupVersion}`, groupVersion })),
    ].map(
      // A group whose server is unavailable (an aggregated API) does not hide the others.
      async ({ path, groupVersion }) => ({
        groupVersion,
        ...(await get<{ resources?: ApiResource[] }>(path).catch(() => ({ resources: [] }))),
      }),
    ),
  )
  return lists.flatMap(({ groupVersion, resources = [] }) =>
    resources.filter(({ name }) => !name.includes('/')).map(found => known(groupVersion, found)),
  )
}

function known(groupVersion: string, found: ApiResource): KnownType {
  const [version = '', group = ''] = groupVersion.split('/').reverse()
  const { name, kind, namespaced, singularName, shortNames = [], categories = [] } = found
  const short = [name, singularName || kind.toLowerCase(), ...shortNames]
  const names = [...new Set([...short, ...(group ? short.flatMap(text => [`${text}.${group}`, `${text}.${version}.${group}`]) : [])])]
  return {
    resource: describeResource({ group, version, kind, plural: name, scope: namespaced ? 'Namespaced' : 'Cluster' }),
    names,
    categories,
  }
}

/** What `TYPE` on a command line means: `stacks`, `stk`, `stacks.oarlock.dev`, `stacks,runs`, or a category such as `oarlock`. */
export function findTypes(typed: string, types: readonly KnownType[]): Resource[] {
  return typed.split(',').flatMap(text => {
    const name = text.trim().toLowerCase()
    const found = types.find(({ names }) => names.includes(name))
    if (found) return [found.resource]
    const ofCategory = types.filter(({ categories }) => categories.includes(name))
    if (ofCategory.length > 0) return ofCategory.map(({ resource }) => resource)
    const close = suggest(
      name,
      types.flatMap(({ names, categories }) => [...names.filter(each => !each.includes('.')), ...categories]),
    )
    throw new CliError(`the server has no type ${JSON.stringify(text)}`, {
      exitCode: exitCodes.notFound,
      hint: close ? `did you mean ${close}?` : '"kubectl api-resources" lists the types',
    })
  })
}

/** Splits `stack/a` into type and name; without a slash the type is `defaultType`. */
export function parseTarget(text: string, defaultType: string): { type: string; name: string } {
  const slash = text.indexOf('/')
  return slash < 0 ? { type: defaultType, name: text } : { type: text.slice(0, slash), name: text.slice(slash + 1) }
}
