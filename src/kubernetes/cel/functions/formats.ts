import { chargeCost } from '../../object/cost-limit.ts'
import { labelValueErrors, nameErrors, qualifiedNameErrors } from '../../object/names.ts'
import { hasStringFormat } from '../../object/string-format.ts'
import { opaqueNames } from '../declarations.ts'
import { ArrayListValue, Opaque, Optional } from '../values.ts'
import { asString, type FunctionTable, unwrapOpaque } from './implementation.ts'

/** Returns the errors of a string; empty if it is valid. */
type Check = (text: string) => readonly string[]

const prefix = (text: string) => (text.endsWith('-') ? `${text.slice(0, -1)}a` : text)
const strfmt =
  (format: string, why: string): Check =>
  text =>
    hasStringFormat(text, format) ? [] : [why]

const checks: Readonly<Record<string, Check>> = {
  dns1123Label: text => nameErrors(text, 'dns1123Label'),
  dns1123Subdomain: text => nameErrors(text, 'dns1123Subdomain'),
  dns1035Label: text => nameErrors(text, 'dns1035Label'),
  dns1123LabelPrefix: text => nameErrors(prefix(text), 'dns1123Label'),
  dns1123SubdomainPrefix: text => nameErrors(prefix(text), 'dns1123Subdomain'),
  dns1035LabelPrefix: text => nameErrors(prefix(text), 'dns1035Label'),
  qualifiedName: qualifiedNameErrors,
  labelValue: labelValueErrors,
  uri: strfmt('uri', 'invalid URI for request'),
  uuid: strfmt('uuid', 'does not match the UUID format'),
  byte: strfmt('byte', 'invalid base64'),
  date: strfmt('date', 'invalid date'),
  datetime: strfmt('date-time', 'invalid datetime'),
}

const formatOf = (name: string) => new Opaque(opaqueNames.Format, checks[name], name)

/** Named formats: `format.dns1123Label().validate(self)` is none if the string is valid. */
export const formats: FunctionTable = {
  ...Object.fromEntries(Object.keys(checks).map(name => [`format.${name}`, () => formatOf(name)])),
  'format.named': name => (Object.hasOwn(checks, asString(name)) ? new Optional(formatOf(asString(name))) : Optional.none),
  validate: (format, text) => {
    const check = unwrapOpaque(format, opaqueNames.Format, (inner): inner is Check => typeof inner === 'function')
    chargeCost(asString(text).length)
    const why = check(asString(text))
    return why.length === 0 ? Optional.none : new Optional(new ArrayListValue([...why]))
  },
}
