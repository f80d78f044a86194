/**
 * The callback plugin that reports what happens to Oarlock, one JSON object a line on stdout after a mark that only this Run knows. Ansible loads it from
 * a file that the engine writes for each Run: a part of the program, not a data file, so every bundle and image has it. It needs Python 3.8 and
 * ansible-core 2.12. A result with `no_log` is reported without its content.
 */
/** `name` is not known to the source, which could have a plugin of the same name next to its playbook, and that would be loaded instead. */
export const callbackPlugin = (name: string): string => `# Written by Oarlock.
DOCUMENTATION = '''
name: ${name}
type: notification
short_description: reports tasks to Oarlock
description: One JSON object a line.
requirements: []
'''
import json
import os
import threading

from ansible.plugins.callback import CallbackBase

MAX_CHARS = 2000
MAX_ENTRIES = 5


def text_of(value):
    return (value if isinstance(value, str) else json.dumps(value, default=str))[:MAX_CHARS]


def reason_of(result):
    """Why a result failed: the message, or what the program printed."""
    if result.get('_ansible_no_log') or result.get('censored'):
        return 'the result is hidden (no_log)'
    parts = []
    failed = [each for each in result.get('results') or [] if isinstance(each, dict) and (each.get('failed') or each.get('unreachable'))]
    for each in failed[:MAX_ENTRIES]:
        item = '' if each.get('_ansible_no_log') else text_of(each.get('_ansible_item_label', each.get('item', '')))
        parts.append('item %s: %s' % (item, reason_of(each)))
    if parts:
        return '; '.join(parts)[:MAX_CHARS]
    for key in ('msg', 'module_stderr', 'stderr', 'stdout', 'exception', 'reason'):
        value = result.get(key)
        if value:
            message = text_of(value)
            error = result.get('stderr')
            if key == 'msg' and error and text_of(error) not in message:
                message = '%s: %s' % (message, text_of(error))
            return message[:MAX_CHARS]
    return 'the module gave no reason'


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = 'notification'
    CALLBACK_NAME = '${name}'
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.mark = os.environ.pop('OARLOCK_ANSIBLE_MARK', '')
        self.outputs = os.environ.pop('OARLOCK_ANSIBLE_OUTPUTS', '')
        self.lock = threading.Lock()

    def report(self, event, **fields):
        if not self.mark:
            return
        line = (self.mark + json.dumps(dict(fields, event=event), default=str) + '\\n').encode('utf-8', 'replace')
        with self.lock:
            while line:
                line = line[os.write(1, line):]

    def v2_playbook_on_start(self, playbook):
        try:
            total = sum(self.tasks_of(play.compile()) for play in playbook.get_plays())
        except Exception:
            total = 0
        self.report('start', total=total)

    def tasks_of(self, blocks):
        count = 0
        for block in blocks:
            for task in list(block.block) + list(block.rescue) + list(block.always):
                if hasattr(task, 'block'):
                    count += self.tasks_of([task])
                elif task.action not in ('meta', 'ansible.builtin.meta'):
                    count += 1
        return count

    def v2_playbook_on_task_start(self, task, is_conditional):
        self.report('task', task=self.name_of(task))

    def v2_playbook_on_handler_task_start(self, task):
        self.report('task', task=self.name_of(task))

    def v2_runner_on_start(self, host, task):
        self.report('running', host=host.get_name(), task=self.name_of(task))

    def name_of(self, task):
        return (task.get_name() or task.action or '').strip()[:MAX_CHARS]

    def ended(self, result, status, **fields):
        content = result._result
        fields['changed'] = bool(content.get('changed'))
        self.report(status, host=result._host.get_name(), task=self.name_of(result._task), **fields)

    def v2_runner_on_ok(self, result):
        self.ended(result, 'ok')

    def v2_runner_on_skipped(self, result):
        self.ended(result, 'skipped')

    def v2_runner_on_failed(self, result, ignore_errors=False):
        hidden = getattr(result._task, 'no_log', False)
        reason = 'the result is hidden (no_log)' if hidden else reason_of(result._result)
        self.ended(result, 'failed', ignored=bool(ignore_errors), reason=reason)

    def v2_runner_on_unreachable(self, result):
        self.ended(result, 'unreachable', ignored=False, reason=reason_of(result._result))

    def v2_playbook_on_stats(self, stats):
        hosts = {}
        for host in sorted(stats.processed.keys()):
            hosts[host] = stats.summarize(host)
        if self.outputs:
            with open(self.outputs, 'a') as file:
                file.write(json.dumps(stats.custom.get('_run', {}), default=str) + '\\n')
        self.report('recap', hosts=hosts)
`
