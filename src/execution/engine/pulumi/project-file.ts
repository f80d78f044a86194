import { join } from 'node:path'
import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import type { EngineContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'

const maxProjectFileBytes = 1024 * 1024
/** In this order the CLI looks for them. */
const projectFileNames = ['Pulumi.yaml', 'Pulumi.yml', 'Pulumi.json']

/** What Oarlock reads of a project file. */
export type PulumiProject = {
  readonly fileName: string
  readonly name: string
  /** nodejs, python, go, dotnet, java, yaml or another language of the CLI. */
  readonly runtime: string
  readonly runtimeOptions: Readonly<Record<string, unknown>>
  /** URL of `backend.url`. */
  readonly backendUrl: string | undefined
  /** Directory of the configuration files of the stacks (`stackConfigDir`), relative to the project file. */
  readonly stackConfigDirectory: string
  /** Keys of the configuration, with the name of the project, that it declares as lists or objects. */
  readonly structuredConfig: ReadonlySet<string>
}

/** @throws {EngineError} InvalidConfiguration if there is no project file, or it has no name and runtime. */
export async function readProject(context: EngineContext): Promise<PulumiProject> {
  for (const fileName of projectFileNames) {
    const text = await readProjectText(context, fileName)
    if (text !== undefined) return await parseProject(fileName, text)
  }
  throw invalid(
    `the source has no ${projectFileNames.join(', ')}: each Pulumi program has one; if it is in a directory of the source, set spec.source.…path to it`,
  )
}

async function readProjectText(context: EngineContext, fileName: string): Promise<string | undefined> {
  try {
    return await context.files.readText(join(context.directory, fileName), { maxBytes: maxProjectFileBytes })
  } catch (error) {
    if (error instanceof UnexpectedFileError) throw invalid(`${fileName}: ${error.problem}`)
    throw error
  }
}

/** Exported for its test. */
export async function parseProject(fileName: string, text: string): Promise<PulumiProject> {
  const { parse } = await import('yaml')
  let document: unknown
  try {
    document = fileName.endsWith('.json') ? JSON.parse(text) : parse(text, { maxAliasCount: 100 })
  } catch (error) {
    throw invalid(`${fileName} cannot be parsed: ${(error as Error).message.split('\n')[0]}`)
  }
  if (!isJsonObject(document)) throw invalid(`${fileName} must be an object with name and runtime`)
  const { name, runtime, backend, stackConfigDir, config } = document
  if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]{1,100}$/.test(name)) {
    throw invalid(`${fileName}: name must have 1 to 100 letters, digits, "_", "-" and ".", got ${JSON.stringify(name)?.slice(0, 120)}`)
  }
  const named = isJsonObject(runtime) ? runtime.name : runtime
  if (typeof named !== 'string' || named === '') {
    throw invalid(`${fileName}: runtime must name a language such as nodejs, python or yaml, got ${JSON.stringify(runtime)?.slice(0, 120)}`)
  }
  const url = isJsonObject(backend) ? backend.url : undefined
  return {
    ...{ fileName, name, runtime: named, runtimeOptions: isJsonObject(runtime) && isJsonObject(runtime.options) ? runtime.options : {} },
    backendUrl: typeof url === 'string' && url !== '' ? url : undefined,
    stackConfigDirectory: typeof stackConfigDir === 'string' ? stackConfigDir : '.',
    structuredConfig: structuredKeys(name, config),
  }
}

const structuredKeys = (project: string, config: unknown): Set<string> =>
  new Set(
    Object.entries(isJsonObject(config) ? config : {})
      .filter(([, declared]) => isJsonObject(declared) && (declared.type === 'object' || declared.type === 'array'))
      .map(([key]) => (key.includes(':') ? key : `${project}:${key}`)),
  )

const invalid = (message: string) => new EngineError('InvalidConfiguration', message, { retryable: false })
