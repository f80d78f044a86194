import { ok, type RouteRequest, type Routes } from './route-request.ts'
import { defineRoute } from './router.ts'

/** What the CLI asks before it works with a stack. */
export const userRoutes: Routes = [
  defineRoute('GET /api/user', 'run', async ({ context }) => {
    const { name, organizations } = await context.backend.readUser()
    const toUser = (login: string) => ({ name: login, githubLogin: login, avatarUrl: '' })
    return ok({ id: name, ...toUser(name), email: '', organizations: organizations.map(toUser), identities: [] })
  }),
  defineRoute('GET /api/user/organizations/default', 'run', async ({ context }) => {
    const { organizations } = await context.backend.readUser()
    // The CLI reads the fields without regard to case.
    return ok({ githubLogin: organizations[0] ?? '', messages: [] })
  }),
  defineRoute('GET /api/capabilities', 'run', async ({ context }) => ok({ capabilities: capabilities(context) })),
  // The CLI's own version: it then reports no newer one. Which CLI a Stack runs is not for the CLI to change.
  defineRoute('GET /api/cli/version', 'run', async ({ cliVersion = '0.0.0' }) =>
    ok({ latestVersion: cliVersion, oldestWithoutWarning: cliVersion, latestDevVersion: '' }),
  ),
]

/**
 * `deployment-schema-version` 4: a state may name features that older CLIs must not ignore; without it the CLI drops those names.
 *
 * Delta checkpoints are offered only on request. Read in the source of CLI 3.259 and seen with the real CLI: what it sends as a verbatim or delta
 * checkpoint lacks `pending_operations`, snippets and extensions, which the plain checkpoint has. After a kill, the resources in flight would be lost.
 */
function capabilities({ deltaCutoffBytes }: RouteRequest['context']): unknown[] {
  const delta = { capability: 'delta-checkpoint-uploads-v2', version: 2, configuration: { checkpointCutoffSizeBytes: deltaCutoffBytes } }
  return [
    { capability: 'batch-encrypt' },
    { capability: 'deployment-schema-version', version: 1, configuration: { version: 4 } },
    ...(deltaCutoffBytes !== undefined ? [delta] : []),
  ]
}
