import type { ActionName } from '../../protocol/index.ts'

/** What an action does and what becomes of the real infrastructure: a sentence for the user who confirms it. */
export const actionEffects: Readonly<Record<ActionName, string>> = {
  run: 'Plans the current source and inputs and applies the changes to the real infrastructure; where an approval is required, nothing changes before it is given.',
  plan: 'Plans the current source and inputs and shows what would change; the real infrastructure stays as it is.',
  'plan-destroy': 'Plans the destruction and shows what would be destroyed; the real infrastructure stays as it is.',
  refresh: 'Reads the real infrastructure and corrects the stored state and the outputs; the real infrastructure stays as it is.',
  approve: 'Executes this plan: the real infrastructure changes as the plan shows.',
  reject: 'This plan is never applied; a change or a request makes a new one. The real infrastructure stays as it is.',
  cancel: 'Stops the engine of the active Run; what it has changed in the real infrastructure until then stays changed.',
  suspend:
    'No Run starts until the Stack is resumed, neither for a change nor for drift; an active Run continues, and the real infrastructure stays as it is.',
  resume: 'Runs start again: what has changed meanwhile is applied to the real infrastructure, after an approval where one is required.',
  destroy: 'Destroys the real resources in this plan, and then deletes the Stack.',
  rollback:
    'Makes an older version of the state the current one; the real infrastructure stays as it is until the next Run, which plans from that version.',
  drain: 'The worker finishes its Runs, starts no others, and exits; the real infrastructure stays as it is.',
  cordon: 'The worker gets no further Run, and finishes those that it has; the real infrastructure stays as it is.',
  uncordon: 'The worker gets Runs again; the real infrastructure stays as it is until one changes it.',
}

/** Of a destruction whose plan has nothing. */
export const emptyDestructionEffect = 'Deletes the Stack; the real infrastructure stays as it is.'
