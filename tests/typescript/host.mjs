// A host with a human, by the official TypeScript SDK. Its one argument is the job, a JSON object:
//   {"command": …, "env": {…}, "modern": true | false, "calls": [{"name": …, "arguments": {…}}, …]}
// It prints a JSON line for each question, {"asked": params, "number": n}, then waits for the line {"number": n, "said": …} on
// stdin; and {"taken_back": n} when the server wants no answer any more. After each call it prints {"result": …} or
// {"error": …}.

import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const job = JSON.parse(process.argv[2]);
const tell = (line) => process.stdout.write(JSON.stringify(line) + '\n');

const waiting = new Map();
createInterface({ input: process.stdin }).on('line', (line) => {
    const { number, said } = JSON.parse(line);
    waiting.get(number)?.(said);
});

const client = new Client(
    { name: 'typescript', version: '1' },
    {
        capabilities: { elicitation: { form: {}, url: {} } },
        ...(job.modern ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {}),
    },
);

let asked = 0;
client.setRequestHandler('elicitation/create', (request, context) => {
    const number = ++asked;
    context?.mcpReq?.signal?.addEventListener('abort', () => tell({ taken_back: number }));
    const response = new Promise((resolve) => waiting.set(number, resolve));
    tell({ asked: request.params, number });
    return response;
});

await client.connect(new StdioClientTransport({ command: job.command, env: job.env }));
for (const call of job.calls) {
    try {
        tell({ result: await client.callTool(call) });
    } catch (error) {
        tell({ error: { code: error.code, message: error.message } });
    }
}
await client.close();
process.exit(0);
