// https://prometheus.io/docs/instrumenting/exposition_formats/

export type Sample = { labels?: string; suffix?: string; value: number }

export function metric(name: string, type: 'counter' | 'gauge' | 'histogram', help: string, samples: Iterable<Sample>): string {
  let text = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
  for (const { labels = '', suffix = '', value } of samples) text += `${name}${suffix}${labels && `{${labels}}`} ${value}\n`
  return text
}

/** `a="b",c="d"`: what may be inside is escaped. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replace(/[\\"\n]/g, char => (char === '\n' ? '\\n' : `\\${char}`))}"`)
    .join(',')
}
