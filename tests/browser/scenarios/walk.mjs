// People go through pages, a step after the other; after each it is noted what there is to see.
//
// A step has one or more of these, in this order; `who` says which browser it is done in, the first one else:
//   {"open": URL}              the link, or where an earlier run of this scenario left
//   {"fill": {LABEL: VALUE}}   fields
//   {"check": LABEL}           a box
//   {"press": NAME}            a button or a link
//   {"press": NAME, "last": true}   the same, and the tab is closed before the answer is there; another is opened
//   {"until": TEXT}            waits for an address that holds this text
//   {"shows": TEXT}            waits until the page shows this text
const look = async (page) => ({
  url: page.url(),
  heading: await page.locator('h1').innerText(),
  text: await page.locator('body').innerText(),
});

export default async function ({ input, open }) {
  const people = input.people ?? { somebody: input.header };
  const tabs = {};
  for (const [who, header] of Object.entries(people)) {
    tabs[who] = await open({ javaScriptEnabled: input.script });
    // As a proxy before our pages would; others do not care.
    if (header) await tabs[who].context.setExtraHTTPHeaders(header);
  }
  const complaints = Object.values(tabs).map((tab) => tab.complaints);
  const seen = [];
  for (const { who = Object.keys(people)[0], ...step } of input.steps) {
    const tab = tabs[who];
    const { page } = tab;
    if (step.open) await page.goto(step.open);
    for (const [label, value] of Object.entries(step.fill ?? {})) await page.getByLabel(label, { exact: true }).fill(value);
    if (step.check) await page.getByLabel(step.check).check();
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
        tab.complaints.length = 0;
        tab.page = await tab.context.newPage();
        seen.push(null);
        continue;
      }
      const gone = page.waitForEvent('framenavigated');
      await named.first().click({ noWaitAfter: true });
      await gone;
    }
    if (step.until) {
      await page.waitForURL((url) => url.href.includes(step.until)).catch((error) => {
        throw new Error(`${JSON.stringify(step)} led to ${page.url()}`, { cause: error });
      });
    }
    if (step.shows) {
      await page.getByText(step.shows).first().waitFor().catch(async (error) => {
        throw new Error(`${JSON.stringify(step)} shows ${await page.locator('body').innerText()}`, { cause: error });
      });
    }
    await page.waitForLoadState();
    seen.push(await look(page));
  }
  return { seen, complaints: complaints.flat() };
}
