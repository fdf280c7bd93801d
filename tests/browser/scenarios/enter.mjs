// The person enters a value by keyboard alone, and sends it.
export default async function ({ input, open }) {
  const { page, complaints } = await open({ javaScriptEnabled: input.script });
  await page.goto(input.link);
  const asked = await page.locator('h1').innerText();
  const reached = [];
  for (let presses = 0; presses < 20; presses += 1) {
    await page.keyboard.press('Tab');
    const focus = await page.evaluate(() => {
      const { tagName, name, innerText } = document.activeElement;
      return { tagName, name, text: innerText };
    });
    reached.push(focus.name || focus.text);
    if (focus.name === 'api_key') break;
  }
  await page.keyboard.type(input.value);
  await page.keyboard.press('Enter');
  await page.waitForURL('**/done');
  return { asked, reached, heading: await page.locator('h1').innerText(), url: page.url(), complaints };
}
