// Runs one scenario in Chromium: `node run.mjs SCENARIO INPUT`, both JSON in and JSON out.
// A scenario is a file in scenarios/ whose default export takes { browser, input, open }.
import { chromium } from 'playwright-core';

const [scenario, input] = process.argv.slice(2);
const { default: play } = await import(`./scenarios/${scenario}.mjs`);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});

/// A tab of its own, and what its console complained of.
async function open(options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (message) => {
    // A page with an error status is reported by the browser as a resource that failed to load.
    const status = message.text().startsWith('Failed to load resource: the server responded with a status of');
    if (['error', 'warning'].includes(message.type()) && !status) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('requestfailed', (request) => complaints.push(`${request.failure()?.errorText} ${request.url()}`));
  page.setDefaultTimeout(15_000);
  return { context, page, complaints };
}

try {
  const result = await play({ browser, input: JSON.parse(input), open });
  process.stdout.write(JSON.stringify(result));
} finally {
  await browser.close();
}
