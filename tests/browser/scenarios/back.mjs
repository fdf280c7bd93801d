// The person types, goes elsewhere and comes back: a page from the back/forward cache keeps nothing.
export default async function ({ input, open }) {
  const { page, complaints } = await open();
  await page.goto(input.link);
  await page.locator('[name=api_key]').fill(input.value);
  await page.goto(input.elsewhere);
  await page.goBack();
  await page.locator('[name=api_key]').waitFor();
  const restored = await page.locator('[name=api_key]').inputValue();
  // As a browser does that has kept the page in memory.
  await page.locator('[name=api_key]').fill(input.value);
  await page.evaluate(() => window.dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })));
  const cached = await page.locator('[name=api_key]').inputValue();
  return { restored, cached, complaints };
}
