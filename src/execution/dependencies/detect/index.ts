/** Which dependencies a project has, and everything of its source that their install depends on. */
import type { DetectedDependencies, DetectOptions, ManagerName } from '../managers/package-manager.ts'
import { detectGalaxy } from './detect-galaxy.ts'
import { detectGo } from './detect-go.ts'
import { detectNode } from './detect-node.ts'
import { detectPython } from './detect-python.ts'

export type Runtime = 'node' | 'python' | 'go' | 'ansible'

const detectors: Record<Runtime, (options: DetectOptions) => Promise<DetectedDependencies | undefined>> = {
  node: detectNode,
  python: detectPython,
  go: detectGo,
  ansible: detectGalaxy,
}
const runtimeOf: Record<ManagerName, Runtime> = {
  ...({ npm: 'node', pnpm: 'node', yarn: 'node', 'yarn-berry': 'node', bun: 'node' } as const),
  ...({ pip: 'python', uv: 'python', poetry: 'python', go: 'go', galaxy: 'ansible' } as const),
}

/**
 * The dependencies of the project in `directory`. With neither `runtime` nor `manager`, those of the first of Node.js, Python and Go that it has;
 * a requirements file of Ansible counts only where it is asked for.
 * @throws {DependencyError} InvalidConfiguration
 */
export async function detectDependencies(
  options: DetectOptions & { runtime?: Runtime | undefined },
): Promise<DetectedDependencies | undefined> {
  const runtime = options.manager === undefined ? options.runtime : runtimeOf[options.manager]
  if (runtime) return await detectors[runtime](options)
  return (await detectNode(options)) ?? (await detectPython(options)) ?? (await detectGo(options))
}
