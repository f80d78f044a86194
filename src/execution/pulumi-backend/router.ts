import type { PulumiStackId } from './pulumi-backend.ts'

/** Which token a route requires: that of the Run, or that of the update in its path. */
export type RouteAccess = 'run' | 'update'

/** `:organization`, `:project`, `:stack`, `:update` and `:version` of the path. */
export type RouteParameters = Readonly<Record<string, string>>

export type Route<Handler> = {
  readonly method: string
  /** Segments; one that starts with `:` is a parameter. */
  readonly path: readonly string[]
  readonly access: RouteAccess
  readonly handler: Handler
}

export type RouteTable<Handler> = readonly Route<Handler>[]

/** `'PATCH /api/stacks/:organization/:project/:stack/tags'` */
export function defineRoute<Handler>(pattern: string, access: RouteAccess, handler: Handler): Route<Handler> {
  const [method = '', path = ''] = pattern.split(' ')
  return { method, path: path.split('/').slice(1), access, handler }
}

/** Finds the route of a path without its query. Undefined: there is none. */
export function matchRoute<Handler>(
  routes: RouteTable<Handler>,
  method: string,
  path: string,
): { route: Route<Handler>; parameters: RouteParameters } | undefined {
  const segments = path.split('/').slice(1)
  if (segments.length > 16) return undefined
  for (const route of routes) {
    if (route.method !== method || route.path.length !== segments.length) continue
    const parameters: Record<string, string> = {}
    const isMatch = route.path.every((expected, i) => {
      const segment = segments[i] as string
      if (!expected.startsWith(':')) return expected === segment
      const value = decodeSegment(segment)
      if (value !== undefined) parameters[expected.slice(1)] = value
      return value !== undefined
    })
    if (isMatch) return { route, parameters }
  }
  return undefined
}

/** Names of Pulumi have letters, digits, hyphens, underscores and periods. Undefined: it is no name. */
function decodeSegment(segment: string): string | undefined {
  try {
    const name = decodeURIComponent(segment)
    return /^[A-Za-z0-9._-]{1,253}$/.test(name) && name !== '.' && name !== '..' ? name : undefined
  } catch {
    return undefined
  }
}

export const stackOf = ({ organization = '', project = '', stack = '' }: RouteParameters): PulumiStackId => ({
  organization,
  project,
  stack,
})
