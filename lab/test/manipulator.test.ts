import { Signal } from '@lumino/signaling';
import { expect, test, vi } from 'vitest';

import { Manipulator } from '../src/manipulator';

// It needs a real page.
vi.mock('@jupyterlab/services', () => ({ KernelMessage: {} }));

/** Pages that have one kernel; returns what it says to all of them, and who passed what on. */
function open(...names: string[]) {
  const passed: string[] = [];
  const signals = names.map(name => {
    const kernel = { clientId: name, registerCommTarget: () => undefined, hasComm: () => false };
    const sessionContext = { session: { kernel } } as any;
    sessionContext.kernelChanged = new Signal<any, any>(sessionContext);
    sessionContext.iopubMessage = new Signal<any, any>(sessionContext);
    const panel = { sessionContext, content: { widgets: [] } } as any;
    const pass = async (facts: any) => {
      passed.push(`${name} ${facts.kind}`);
    };
    new Manipulator(panel, () => [panel], pass);
    return sessionContext.iopubMessage;
  });
  const say = (type: string, session: string, cause: string, content: object = {}) =>
    signals.forEach(signal =>
      signal.emit({
        header: { msg_type: type },
        parent_header: { session, msg_type: cause, msg_id: 'm' },
        content
      })
    );
  const request = { comm_id: 'c', data: { method: 'get_cell_count', request_id: '1' } };
  return { passed, say, ask: (session: string, cause: string) => say('comm_msg', session, cause, request) };
}

test('the page whose cell asks passes it on, and so does one whose widget was used', () => {
  const { passed, say, ask } = open('one', 'two');
  say('execute_input', 'one', 'execute_request');
  ask('one', 'execute_request');
  ask('two', 'comm_msg');
  expect(passed).toEqual(['one msg', 'two msg']);
});

test('a page that only asks what the kernel is does not answer for the one that ran the cell', () => {
  const { passed, say, ask } = open('one', 'two');
  ask('two', 'kernel_info_request'); // neither has seen a run
  say('execute_input', 'one', 'execute_request');
  ask('two', 'kernel_info_request');
  ask('engine', 'comm_info_request');
  say('execute_input', 'engine', 'execute_request');
  ask('one', 'kernel_info_request'); // the engine answers
  expect(passed).toEqual(['one msg', 'one msg']);
});
