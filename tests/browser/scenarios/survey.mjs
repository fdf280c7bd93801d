// Looks at every page in every way: light and dark, narrow and wide, with and without scripts.
// Reports what axe finds, what the console says, and what does not fit; leaves a picture of each.
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export default async function ({ input, open }) {
  mkdirSync(input.pictures, { recursive: true });
  const findings = [];
  let looked = 0;
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [320, 1280]) {
      for (const javaScriptEnabled of [true, false]) {
        const { context, page, complaints } = await open({
          colorScheme,
          javaScriptEnabled,
          viewport: { width, height: 800 },
          reducedMotion: 'reduce',
        });
        for (const { name, link, header, invalid } of input.pages) {
          const way = `${name}-${colorScheme}-${width}-${javaScriptEnabled ? 'script' : 'plain'}`;
          await context.setExtraHTTPHeaders(header ?? {});
          await page.goto(link);
          if (invalid !== undefined) {
            await page.locator('[name=api_key]').fill(invalid);
            await page.locator('button.send').click();
            await page.locator('.errors').waitFor();
          }
          await page.screenshot({ path: `${input.pictures}/${way}.png`, fullPage: true });
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
          if (overflow > 0) findings.push(`${way}: ${overflow} pixels too wide`);
          // axe needs scripts; the document is the same without.
          if (javaScriptEnabled) {
            await page.evaluate(axe);
            const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
            const { violations } = await page.evaluate((values) => window.axe.run({ runOnly: { type: 'tag', values } }), tags);
            for (const { id, nodes } of violations) findings.push(`${way}: ${id} ${nodes.map((node) => node.html).join(' ')}`);
          }
          for (const complaint of complaints.splice(0)) findings.push(`${way}: ${complaint}`);
          looked += 1;
        }
        await context.close();
      }
    }
  }
  return { looked, findings };
}
