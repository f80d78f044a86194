import { join } from 'node:path'
import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import type { WarmContext } from '../engine.ts'
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
  /** All of it: a program in YAML is a part of it. */
  readonly document: unknown
  /** Keys of the configuration, with the name of the project, that it declares as lists or objects. */
  readonly structuredConfig: ReadonlySet<string>
}

export type PulumiRuntime = Pick<PulumiProject, 'runtime' | 'runtimeOptions'>

/** @throws {EngineError} InvalidConfiguration if there is no project file, or it has no name and runtime. */
export async function readProject(context: WarmContext): Promise<PulumiProject> {
  for (const fileName of projectFileNames) {
    const text = await readProjectText(context, join(context.directory, fileName), fileName)
    if (text !== undefined) return await parseProject(fileName, text)
  }
  throw invalid(
    `the source has no ${projectFileNames.join(', ')}: each Pulumi program has one; if it is in a directory of the source, set spec.source.…path to it`,
  )
}

/**
 * The language of a policy pack, from its `PulumiPolicy.yaml`.
 * @param field that names the directory; `path` is its value.
 * @throws {EngineError} InvalidConfiguration
 */
export async function readPolicyPack(context: WarmContext, directory: string, field: string, path: string): Promise<PulumiRuntime> {
  const name = `${path}/PulumiPolicy.yaml`
  const text = await readProjectText(context, join(directory, 'PulumiPolicy.yaml'), name)
  if (text !== undefined) return runtimeOf(name, await parseObject(name, text))
  throw invalid(`${field}: the source has no ${name}; name the directory of a policy pack, relative to the root of the source`)
}

async function readProjectText(context: WarmContext, path: string, name: string): Promise<string | undefined> {
  try {
    return await context.files.readText(path, { maxBytes: maxProjectFileBytes })
  } catch (error) {
    if (error instanceof UnexpectedFileError) throw invalid(`${name}: ${error.problem}`)
    throw error
  }
}

/** Exported for its test. */
export async function parseProject(fileName: string, text: string): Promise<PulumiProject> {
  const document = await parseObject(fileName, text)
  const { name, backend, stackConfigDir, config } = document
  if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]{1,100}$/.test(name)) {
    throw invalid(`${fileName}: name must have 1 to 100 letters, digits, "_", "-" and ".", got ${JSON.stringify(name)?.slice(0, 120)}`)
  }
  const url = isJsonObject(backend) ? backend.url : undefined
  return {
    ...{ fileName, name, ...runtimeOf(fileName, document) },
    backendUrl: typeof url === 'string' && url !== '' ? url : undefined,
    stackConfigDirectory: typeof stackConfigDir === 'string' ? stackConfigDir : '.',
    structuredConfig: structuredKeys(name, config),
    document,
  }
}

async function parseObject(fileName: string, text: string): Promise<Record<string, unknown>> {
  const { parse } = await import('yaml')
  let document: unknown
  try {
    document = fileName.endsWith('.json') ? JSON.parse(text) : parse(text, { maxAliasCount: 100 })
  } catch (error) {
    throw invalid(`${fileName} cannot be parsed: ${(error as Error).message.split('\n')[0]?.replace(/:$/, '')}`)
  }
  if (!isJsonObject(document)) throw invalid(`${fileName} must be an object with name and runtime`)
  return document
}

function runtimeOf(fileName: string, { runtime }: Record<string, unknown>): PulumiRuntime {
  const named = isJsonObject(runtime) ? runtime.name : runtime
  if (typeof named !== 'string' || named === '') {
    throw invalid(`${fileName}: runtime must name a language such as nodejs, python or yaml, got ${JSON.stringify(runtime)?.slice(0, 120)}`)
  }
  return { runtime: named, runtimeOptions: isJsonObject(runtime) && isJsonObject(runtime.options) ? runtime.options : {} }
}

const structuredKeys = (project: string, config: unknown): Set<string> =>
  new Set(
    Object.entries(isJsonObject(config) ? config : {})
      .filter(([, declared]) => isJsonObject(declared) && (declared.type === 'object' || declared.type === 'array'))
      .map(([key]) => (key.includes(':') ? key : `${project}:${key}`)),
  )

const invalid = (message: string) => new EngineError('InvalidConfiguration', message, { retryable: false })
