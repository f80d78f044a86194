/** Lines of a plan that belong together. `title`: the line that names a resource; undefined for lines between resources, such as the summary. */
export type PlanBlock = { readonly title?: string; readonly tone?: 'good' | 'bad' | 'attention'; readonly lines: readonly string[] }

/** `  # aws_instance.web will be updated in-place` of Terraform and OpenTofu. */
const terraformTitle = /^ {2}# (\S.*?) ((?:will|must|has|is|was) .*)$/
/** `    + aws:s3/bucket:Bucket: (create)` of Pulumi. */
const pulumiTitle = /^ *(?:(\+-|-\+|\+\+|--|[-+~=><])\s)?\s*([\w.-]+:[\w./-]+:[\w.-]+): \((\w[\w -]*)\)/
/** `~ ConfigMap shop/web` of engine manifests. */
const manifestTitle = /^([-+~]) ([A-Z]\w* \S+.*)$/

/** Divides the text of a plan by its resources. Every line is the title or one of the lines of exactly one block, in its order: nothing is approved that was not shown (invariant 11). */
export function planBlocks(text: string, engine: string): PlanBlock[] {
  const blocks: { title?: string; tone?: PlanBlock['tone']; lines: string[] }[] = []
  let current: (typeof blocks)[number] | undefined
  const begin = (title?: string, tone?: PlanBlock['tone']) => {
    current = { ...(title !== undefined && { title }), ...(tone && { tone }), lines: [] }
    blocks.push(current)
    return current
  }
  for (const line of text.split('\n')) {
    const found = toneOfTitle(line, engine)
    if (found) begin(line, found)
    else {
      ;(current ?? begin()).lines.push(line)
      if (current?.title !== undefined && isEndOf(line, engine)) current = undefined
    }
  }
  return blocks
}

/** What a line does with a resource; undefined for one that names none. */
function toneOfTitle(line: string, engine: string): PlanBlock['tone'] {
  if (engine === 'terraform' || engine === 'opentofu') {
    const [, , what] = terraformTitle.exec(line) ?? []
    if (what === undefined) return undefined
    return /destroyed|replaced|removed/.test(what) ? 'bad' : /created|imported/.test(what) ? 'good' : 'attention'
  }
  if (engine === 'pulumi') {
    const [, , , what] = pulumiTitle.exec(line) ?? []
    if (what === undefined || what === 'same') return undefined
    return /delete|replace/.test(what) ? 'bad' : /create|import/.test(what) ? 'good' : 'attention'
  }
  const [, sign] = (engine === 'manifests' && manifestTitle.exec(line)) || []
  return sign === undefined ? undefined : sign === '+' ? 'good' : sign === '-' ? 'bad' : 'attention'
}

/** After it come lines that are of no resource. */
function isEndOf(line: string, engine: string): boolean {
  if (engine === 'manifests') return line === ''
  return engine === 'pulumi' ? /^Resources:|^ {4}--outputs:--|^--outputs/.test(line) : /^ {4}\}$/.test(line)
}
