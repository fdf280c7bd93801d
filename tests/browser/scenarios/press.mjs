// The person presses one button.
export default async function ({ input, open }) {
  const { page, complaints } = await open({ javaScriptEnabled: input.script });
  await page.goto(input.link);
  const before = await page.locator('#left').innerText();
  await page.getByRole('button', { name: input.button, exact: true }).click();
  await page.waitForLoadState();
  const left = page.locator('#left');
  const after = (await left.count()) ? await left.innerText() : '';
  return { before, after, heading: await page.locator('h1').innerText(), complaints };
}
