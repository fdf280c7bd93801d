// A person opens a link and authorises a provider, by its real pages, with form_post or without.
const look = async (page) => ({
  url: page.url(),
  heading: await page.locator('h1').innerText(),
  text: await page.locator('main').innerText(),
});

export default async function ({ input, open }) {
  const { context, page, complaints } = await open({ javaScriptEnabled: input.script });
  // As a proxy before our pages would; the provider does not care.
  await context.setExtraHTTPHeaders(input.header);
  await page.route(/fonts\.googleapis\.com/, (route) => route.fulfill({ contentType: 'text/css', body: '' }));
  const seen = {};
  await page.goto(input.link);
  seen.page = await look(page);
  await page.getByRole('button', { name: /^Continue to/ }).click();
  await page.waitForURL((url) => url.href.startsWith(input.provider));
  await page.locator('input[name=login]').fill('octocat');
  await page.locator('input[name=password]').fill('any');
  await page.locator('button[type=submit], input[type=submit]').first().click();
  await page.waitForLoadState();
  const allow = page.getByRole('button', { name: 'Continue' });
  if (await allow.count()) await allow.click();
  // Where no script sends the form that brings the answer, the person does.
  if (input.sends) await page.locator('form:has(input[name=code]) button').click();
  await page.waitForURL(/\/done$/);
  seen.done = await look(page);
  const ours = (complaint) => !complaint.includes(input.provider);
  seen.complaints = complaints.filter(ours);
  return seen;
}
