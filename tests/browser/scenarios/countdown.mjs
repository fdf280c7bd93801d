// The page counts down and says when the time is up.
export default async function ({ input, open }) {
  const { page, complaints } = await open();
  await page.goto(input.link);
  await page.locator('#left', { hasText: input.over }).waitFor({ timeout: 20_000 });
  return { text: await page.locator('#left').innerText(), complaints };
}
