// A person goes through a payment, a step after the other; after each it is noted what there is to see.
//
// A step is one of these, and `until` waits for an address that holds this text:
//   {"open": URL}              the link, or where an earlier run of this scenario left
//   {"press": NAME}            a button or a link
//   {"press": NAME, "last": true}   the same, and the tab is closed before the answer is there; another is opened
const look = async (page) => ({
  url: page.url(),
  heading: await page.locator('h1').innerText(),
  text: await page.locator('body').innerText(),
});

export default async function ({ input, open }) {
  const { context, page: first, complaints } = await open({ javaScriptEnabled: input.script });
  // As a proxy before our pages would; the processor does not care.
  if (input.header) await context.setExtraHTTPHeaders(input.header);
  let page = first;
  const seen = [];
  for (const { until, ...step } of input.steps) {
    if (step.open) await page.goto(step.open);
    if (step.press) {
      const named = page.getByRole('button', { name: step.press }).or(page.getByRole('link', { name: step.press }));
      if (step.last) {
        const sent = new Promise((resolve) => {
          page.route(/./, async (route) => {
            await route.fetch({ maxRedirects: 0 });
            resolve();
          });
        });
        await named.first().click({ noWaitAfter: true });
        await sent;
        await page.close();
        complaints.length = 0;
        page = await context.newPage();
      } else {
        const gone = page.waitForEvent('framenavigated');
        await named.first().click({ noWaitAfter: true });
        await gone;
      }
    }
    if (until) {
      await page.waitForURL((url) => url.href.includes(until)).catch((error) => {
        throw new Error(`${JSON.stringify(step)} led to ${page.url()}`, { cause: error });
      });
    }
    await page.waitForLoadState();
    seen.push(step.last ? null : await look(page));
  }
  return { seen, complaints };
}
