// The person sends a value that is not right, reads the complaint, and mends it.
export default async function ({ input, open }) {
  const { page, complaints } = await open({ javaScriptEnabled: input.script });
  await page.goto(input.link);
  await page.locator('[name=api_key]').fill(input.wrong);
  await page.locator('button.send').click();
  await page.locator('.errors').waitFor();
  const complaint = await page.locator('.errors li').innerText();
  const focused = await page.evaluate(() => document.activeElement.className);
  await page.locator('.errors a').click();
  const target = await page.evaluate(() => document.activeElement.name);
  const kept = await page.locator('[name=api_key]').inputValue();
  await page.locator('[name=api_key]').fill(input.right);
  await page.locator('button.send').click();
  await page.waitForURL('**/done');
  return { complaint, focused, target, kept, heading: await page.locator('h1').innerText(), complaints };
}
