// An attacker signs in for the attacker's link and has the victim open what came back; or leaves the victim's browser
// signed in as the attacker. The victim must see whose name it is, and click.
export default async function ({ input, open }) {
  const attacker = await open();
  const victim = await open();
  await attacker.page.goto(input.link);
  await attacker.page.getByRole('button', { name: 'Sign in' }).click();
  await attacker.page.waitForURL((url) => url.href.startsWith(input.issuer));
  await attacker.page.route(/fonts\.googleapis\.com/, (route) => route.fulfill({ contentType: 'text/css', body: '' }));
  await attacker.page.locator('input[name=login]').fill('mallory');
  await attacker.page.locator('input[name=password]').fill('any');
  await attacker.page.locator('button[type=submit], input[type=submit]').first().click();
  await attacker.page.getByRole('button', { name: 'Continue' }).waitFor();
  // The attacker takes the last steps by hand, and gives the URL of the very last one to the victim.
  const { request } = attacker.context;
  let answer = await request.post(attacker.page.url(), { form: { prompt: 'consent' }, maxRedirects: 0 });
  let stolen = answer.headers().location;
  while (stolen.startsWith(input.issuer)) {
    answer = await request.get(stolen, { maxRedirects: 0 });
    stolen = answer.headers().location;
  }
  await victim.page.goto(stolen);
  const refused = { heading: await victim.page.locator('h1').innerText(), cookies: await victim.context.cookies() };
  // Whoever is signed in as the attacker sees the attacker's name before anything is done.
  await attacker.page.goto(stolen);
  await attacker.page.waitForLoadState();
  const cookies = await attacker.context.cookies(input.link);
  await victim.context.addCookies(cookies);
  await victim.page.goto(input.link);
  const text = await victim.page.locator('main').innerText();
  return { refused, text, buttons: await victim.page.getByRole('button').allInnerTexts() };
}
