// Two people, each in a browser of their own, sign in at the issuer and open the same link.
async function signIn(page, person) {
  await page.locator('input[name=login]').fill(person);
  await page.locator('input[name=password]').fill('any');
  await page.locator('button[type=submit], input[type=submit]').first().click();
  // The issuer asks once whether the service may know.
  await page.waitForLoadState();
  const consent = page.getByRole('button', { name: 'Continue' });
  if (await consent.count()) await consent.click();
  await page.waitForLoadState();
}

const look = async (page) => ({
  url: page.url(),
  heading: await page.locator('h1').innerText(),
  text: await page.locator('main').innerText(),
});

export default async function ({ input, open }) {
  const ada = await open({ javaScriptEnabled: input.script });
  const bob = await open({ javaScriptEnabled: input.script });
  const seen = { complaints: [] };
  // The issuer's pages want fonts from elsewhere.
  for (const { page } of [ada, bob]) {
    await page.route(/fonts\.googleapis\.com/, (route) => route.fulfill({ contentType: 'text/css', body: '' }));
  }

  await ada.page.goto(input.link);
  seen.before = await look(ada.page);
  seen.cookiesBefore = (await ada.context.cookies()).map((cookie) => cookie.name);
  await ada.page.getByRole('button', { name: 'Sign in' }).click();
  await ada.page.waitForURL((url) => url.href.startsWith(input.issuer));
  await signIn(ada.page, 'ada');
  seen.ada = await look(ada.page);
  seen.cookies = (await ada.context.cookies(input.link)).filter((cookie) => cookie.name.startsWith('__Host-'));

  await bob.page.goto(input.link);
  await bob.page.getByRole('button', { name: 'Sign in' }).click();
  await bob.page.waitForURL((url) => url.href.startsWith(input.issuer));
  await signIn(bob.page, 'bob');
  seen.bob = await look(bob.page);
  // What ada's page holds is of no use in bob's browser, nor without its token.
  const proof = {};
  for (const name of ['_render', '_token']) {
    proof[name] = await ada.page.locator(`form.entry input[name=${name}]`).inputValue();
  }
  const send = async ({ context }, form) => {
    const options = { form: { ...form, api_key: 'stolen' }, headers: { origin: new URL(input.link).origin } };
    return (await context.request.post(`${input.link}/secret`, options)).status();
  };
  seen.refused = [await send(bob, proof), await send(ada, {}), await send(ada, { ...proof, _render: 'other' })];
  // The issuer remembers bob; "another account" asks who it is all the same.
  await bob.page.getByRole('button', { name: 'Sign in with another account' }).click();
  await bob.page.waitForURL((url) => url.href.startsWith(input.issuer));
  seen.asked = await bob.page.locator('input[name=login]').count();

  // Ada's own page: reload, back from elsewhere, a second tab, then the form.
  await ada.page.reload();
  const second = await ada.context.newPage();
  await second.goto(input.other);
  seen.second = await look(second);
  await ada.page.getByLabel('WeatherCo API key').fill(input.value);
  await ada.page.getByRole('button', { name: /^Send to/ }).dblclick();
  await ada.page.waitForURL(/\/done$/);
  seen.done = await look(ada.page);
  // The issuer's own pages may complain of what they like.
  // A second click without a script breaks the first one's form off.
  const broken = `net::ERR_ABORTED ${input.link}/secret`;
  const ours = (complaint) => !complaint.includes(input.issuer) && complaint !== broken;
  seen.complaints = [...ada.complaints, ...bob.complaints].filter(ours);
  return seen;
}
