import type { ChildProcess } from 'node:child_process'

const children = new Set<ChildProcess>()

/** Kills the child when this process exits, also by a signal that the runner handles: a test or bench that fails or is interrupted leaves nothing behind. */
export function killWithUs<Child extends ChildProcess>(child: Child): Child {
  if (children.size === 0) process.on('exit', killAll)
  children.add(child)
  child.once('exit', () => {
    children.delete(child)
    if (children.size === 0) process.off('exit', killAll)
  })
  return child
}

function killAll(): void {
  for (const child of children) child.kill('SIGKILL')
}
