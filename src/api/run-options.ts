import type { Static } from 'typebox'
import { Type } from '../kubernetes/object/index.ts'

/** How many addresses a list of {@link runOptionsSchema} may have. */
export const maxAddresses = 64
/** A key of `for_each` can be any text. */
export const maxAddressChars = 512

// Terraform reads an address with the syntax of its configuration: names, and indexes that are a number or a quoted key.
const name = '[^\\s.\\[\\]"\'$(){},:;=-][^\\s.\\[\\]"\'$(){},:;=]*'
const index = '(\\[([0-9]+|"([^"\\\\\\x00-\\x1f]|\\\\.)*")\\])?'
const modulePath = `(module\\.${name}${index}\\.)*`
const resource = `${name}\\.${name}${index}`
/** A resource, a data source, a module, or an instance of one. */
const targetPattern = `^${modulePath}((data\\.)?${resource}|module\\.${name}${index})$`
/** A managed resource or an instance of one; {@link isManaged} excludes the rest, which a pattern of a CRD cannot. */
const replacePattern = `^${modulePath}${resource}$`
const isManaged = (address: string): boolean => new RegExp(`^${modulePath}(?!(data|module)\\.)${resource}$`, 'u').test(address)

/**
 * Of a Pulumi resource: `urn:pulumi:stack::project::type::name`. The type may be a chain, `parent$child`; the name can be any text. The CLI expands
 * "*": it would select other resources than the one that was named.
 */
export const urnPattern = '^urn:pulumi:[^:\\s*]+::[^:\\s*]+::[^\\s*]+::[^\\x00-\\x1f*]+$'
const withUrns = (pattern: string) => `${pattern}|${urnPattern}`

const addresses = (pattern: string, description: string) =>
  Type.Optional(
    Type.Array(Type.String({ maxLength: maxAddressChars, pattern }), {
      minItems: 1,
      maxItems: maxAddresses,
      description: `${description} At most ${maxAddresses} addresses of ${maxAddressChars} characters.`,
    }),
  )

/** What a user may change of one Run, as options of `terraform plan` and `pulumi preview`. */
export const runOptionsSchema = Type.Object(
  {
    targets: addresses(
      withUrns(targetPattern),
      'The Run plans only these resources, data sources or modules and what they depend on (-target). With engine pulumi they are URNs of resources.',
    ),
    replace: addresses(
      withUrns(replacePattern),
      'The Run replaces these resources even if nothing has changed (-replace). With engine pulumi they are URNs.',
    ),
    refresh: Type.Optional(
      Type.Boolean({
        description:
          'False: the Run compares with the stored state and does not read the resources (-refresh=false). Default: true; with engine pulumi spec.pulumi.refresh of the Stack.',
      }),
    ),
  },
  {
    description:
      'Options that a user requested for this Run, of engines terraform, opentofu and pulumi. After a Run with targets the Stack is not in sync: only a complete Run records its inputs as applied.',
  },
)

export type RunOptions = Static<typeof runOptionsSchema>

/** The engines that have these options. */
const enginesWithOptions: readonly string[] = ['terraform', 'opentofu', 'pulumi']

/** Why an engine cannot plan with options; undefined if it can. */
export function engineOptionsProblem(engine: string, { targets = [], replace = [] }: RunOptions = {}): string | undefined {
  if (!enginesWithOptions.includes(engine)) {
    return `engine ${engine} does not support targets, replace and refresh: only ${enginesWithOptions.slice(0, -1).join(', ')} and ${enginesWithOptions.at(-1)} do`
  }
  const wrong = [...targets, ...replace].find(address => isUrn(address) !== (engine === 'pulumi'))
  if (wrong === undefined) return undefined
  const wanted = engine === 'pulumi' ? 'URNs, such as urn:pulumi:STACK::PROJECT::TYPE::NAME' : 'addresses, such as aws_instance.web[0]'
  return `targets and replace of engine ${engine} are ${wanted}, got ${quote(wrong)}`
}

const isUrn = (address: string): boolean => new RegExp(urnPattern, 'u').test(address)

/** What is wrong with options from a user; undefined if nothing is. */
export function runOptionsProblem(options: unknown): string | undefined {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) return 'options must be a JSON object'
  const { targets, replace, refresh, ...others } = options as Record<string, unknown>
  const [other] = Object.keys(others)
  if (other !== undefined) return `unknown option ${quote(other)}: targets, replace and refresh are allowed`
  if (refresh !== undefined && typeof refresh !== 'boolean') return `refresh must be true or false, got ${quote(refresh)}`
  return (
    addressesProblem('targets', targets, targetPattern, 'such as aws_instance.web[0] or module.network') ??
    addressesProblem('replace', replace, replacePattern, 'of a managed resource, such as module.network.aws_instance.web["a"]')
  )
}

function addressesProblem(field: string, list: unknown, pattern: string, example: string): string | undefined {
  if (list === undefined) return undefined
  if (!Array.isArray(list) || list.length < 1 || list.length > maxAddresses)
    return `${field} must be a list of 1 to ${maxAddresses} addresses`
  const wrong: unknown = list.find(
    address =>
      typeof address !== 'string' ||
      address.length > maxAddressChars ||
      (!isUrn(address) && (!new RegExp(pattern, 'u').test(address) || (pattern === replacePattern && !isManaged(address)))),
  )
  if (wrong === undefined) return undefined
  const tooLong = typeof wrong === 'string' && wrong.length > maxAddressChars
  return `${field} has ${quote(wrong)}${tooLong ? `, which is longer than ${maxAddressChars} characters` : ''}: it must be an address ${example}`
}

const quote = (value: unknown) => (JSON.stringify(value) ?? 'undefined').slice(0, 100)

/** The options as a user types them: `--target a.b --no-refresh`; empty without options. */
export function formatRunOptions({ targets = [], replace = [], refresh }: RunOptions = {}): string {
  const listed = (option: string, list: readonly string[]) => list.map(address => `${option} ${address}`)
  return [...listed('--target', targets), ...listed('--replace', replace), ...(refresh === false ? ['--no-refresh'] : [])].join(' ')
}
