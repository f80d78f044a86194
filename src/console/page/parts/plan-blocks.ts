/** Lines of a plan that belong together. `title`: of one resource; undefined for lines between resources, such as the summary. */
export type PlanBlock = { readonly title?: string; readonly tone?: 'good' | 'bad' | 'attention'; readonly lines: readonly string[] }

/** `  # aws_instance.web will be updated in-place` of Terraform and OpenTofu. */
const terraformTitle = /^ {2}# (\S.*?) ((?:will|must|has|is|was) .*)$/
/** `    + aws:s3/bucket:Bucket: (create)` of Pulumi. */
const pulumiTitle = /^ *(?:(\+-|-\+|\+\+|--|[-+~=><])\s)?\s*([\w.-]+:[\w./-]+:[\w.-]+): \((\w[\w -]*)\)/
/** `~ ConfigMap shop/web` of engine manifests. */
const manifestTitle = /^([-+~]) ([A-Z]\w* \S+.*)$/

/** Divides the text of a plan by its resources. Every line is in exactly one block, in its order: nothing is approved that was not shown (invariant 11). */
export function planBlocks(text: string, engine: string): PlanBlock[] {
  const blocks: { title?: string; tone?: PlanBlock['tone']; lines: string[] }[] = []
  let current: (typeof blocks)[number] | undefined
  const begin = (title?: string, tone?: PlanBlock['tone']) => {
    current = { ...(title !== undefined && { title }), ...(tone && { tone }), lines: [] }
    blocks.push(current)
    return current
  }
  for (const line of text.split('\n')) {
    const found = titleOf(line, engine)
    if (found) begin(found.title, found.tone).lines.push(line)
    else {
      ;(current ?? begin()).lines.push(line)
      if (current?.title !== undefined && isEndOf(line, engine)) current = undefined
    }
  }
  return blocks
}

function titleOf(line: string, engine: string): { readonly title: string; readonly tone: PlanBlock['tone'] } | undefined {
  if (engine === 'terraform' || engine === 'opentofu') {
    const [, address, what = ''] = terraformTitle.exec(line) ?? []
    if (address === undefined) return undefined
    const tone = /destroyed|replaced|removed/.test(what) ? 'bad' : /created|imported/.test(what) ? 'good' : 'attention'
    return { title: `${address} ${what}`, tone }
  }
  if (engine === 'pulumi') {
    const [, , type, what = ''] = pulumiTitle.exec(line) ?? []
    if (type === undefined || what === 'same') return undefined
    return { title: `${type} ${what}`, tone: /delete|replace/.test(what) ? 'bad' : /create|import/.test(what) ? 'good' : 'attention' }
  }
  const [, sign, title] = (engine === 'manifests' && manifestTitle.exec(line)) || []
  return title === undefined ? undefined : { title, tone: sign === '+' ? 'good' : sign === '-' ? 'bad' : 'attention' }
}

/** After it come lines that are of no resource. */
function isEndOf(line: string, engine: string): boolean {
  if (engine === 'manifests') return line === ''
  return engine === 'pulumi' ? /^Resources:|^ {4}--outputs:--|^--outputs/.test(line) : /^ {4}\}$/.test(line)
}
