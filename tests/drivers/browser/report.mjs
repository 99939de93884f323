// Opens a page of neardup_report in Chromium: node report.mjs PAGE FOLDER PROGRAM
// Screenshots go to FOLDER. Fails at the first thing that is not as it should be.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [path, folder, program] = process.argv.slice(2);
const url = pathToFileURL(path).href;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({ executablePath: program });

/** Opens the page, and notes whatever a page without scripts never does. */
async function open(options, check) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const wrong = [];
    page.on('console', (message) => wrong.push(`console: ${message.text()}`));
    page.on('pageerror', (error) => wrong.push(`error: ${error}`));
    page.on('dialog', (dialog) => { wrong.push('a dialog'); return dialog.dismiss(); });
    page.on('request', (request) => {
        if (request.url() !== url) wrong.push(`a request: ${request.url()}`);
    });
    await page.goto(url);
    await check(page);
    assert.equal(await page.evaluate(() => globalThis.hostile), undefined, 'a script ran');
    assert.equal(await page.evaluate(() => document.scripts.length), 0);
    assert.deepEqual(wrong, []);
    await context.close();
}

/** Rules of WCAG 2.2 at level AA, and what axe holds to be good practice. */
async function checkAccess(page) {
    await page.evaluate(axe);
    const { violations, passes } = await page.evaluate(() => axe.run(document, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    }));
    const findings = violations.map(({ id, nodes }) =>
        `${id}: ${nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`)}`);
    assert.deepEqual(findings, []);
    const held = passes.map((rule) => rule.id);
    for (const rule of ['color-contrast', 'heading-order', 'page-has-heading-one', 'skip-link',
        'label', 'svg-img-alt', 'document-title', 'html-has-lang']) {
        assert.ok(held.includes(rule), `${rule} was not checked`);
    }
}

const visible = (page, selector) => page.locator(selector).filter({ visible: true });

/** The numbers follow the radius, by keyboard alone. A row has bits, clusters and removed rows. */
async function checkRadius(page) {
    const stops = page.locator('.radius input');
    const rows = page.locator('tr.of');
    assert.equal(await stops.count(), await rows.count());
    await page.locator('.radius input:checked').focus();
    const chosen = await stops.evaluateAll((all) => all.findIndex((one) => one.checked));
    assert.ok(chosen > 0, 'the greatest radius is chosen at first');
    const seen = new Set();
    for (let number = chosen; number >= 0; number -= 1) {
        assert.equal(await stops.nth(number).isChecked(), true);
        const figures = visible(page, '.figures');
        assert.equal(await figures.count(), 1);
        const [, clusters, goes] = await rows.nth(number).locator('td').allInnerTexts();
        const shown = await figures.locator('strong').allInnerTexts();
        assert.deepEqual(shown.slice(1, 3), [clusters, goes]);
        assert.equal(await visible(page, '.outcome b').innerText(), goes);
        assert.equal(await visible(page, 'pre').count(), 1);
        seen.add(await visible(page, '.member .fate-goes').count());
        await page.keyboard.press('ArrowLeft');
    }
    assert.ok(seen.size > 1, 'the same rows would go at each radius');
    // By the mouse as well: nothing lies over a button, and its number belongs to it.
    for (const [number, part] of [[0, 'input'], [2, 'span'], [1, 'input']]) {
        await page.locator('.stops label').nth(number).locator(part).click();
        assert.equal(await stops.nth(number).isChecked(), true);
    }
}

async function checkKeyboard(page) {
    await page.keyboard.press('Tab');
    const link = page.locator('.skip-link');
    assert.ok(await link.evaluate((one) => one === document.activeElement));
    assert.ok((await link.boundingBox()).y >= 0, 'the skip link is out of sight');
    await page.keyboard.press('Enter');
    assert.equal(new URL(page.url()).hash, '#clusters');
    const covered = await page.evaluate(() => {
        const { x, y } = document.querySelector('#clusters').getBoundingClientRect();
        return document.elementFromPoint(x + 5, y + 5)?.id;
    });
    assert.equal(covered, 'clusters', 'the heading lies below the radius');
    const cluster = page.locator('.cluster > summary').nth(1);
    await cluster.focus();
    await page.keyboard.press('Enter');
    assert.ok(await page.locator('.cluster').nth(1).evaluate((one) => one.open));
}

/** Nothing is wider than the screen, whatever the texts are. */
async function checkWidth(page) {
    await page.evaluate(() => {
        for (const details of document.querySelectorAll('details')) details.open = true;
    });
    const wide = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        return scrollWidth - clientWidth;
    });
    assert.equal(wide, 0, `${wide} pixels too wide`);
}

async function checkPrint(page) {
    await page.emulateMedia({ media: 'print' });
    assert.equal(await page.locator('.radius').isVisible(), false);
    assert.equal(await page.locator('.figures').filter({ visible: true }).count(), 1);
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(background, 'rgb(255, 255, 255)');
    await page.pdf({ path: join(folder, 'print.pdf'), format: 'A4' });
}

// That a script would be noticed: this one runs.
{
    const page = await browser.newPage();
    await page.setContent('<img src="x:" onerror="globalThis.hostile = 1">');
    await page.waitForFunction(() => globalThis.hostile === 1);
    await page.close();
}
for (const colorScheme of ['light', 'dark']) {
    for (const width of [390, 1280]) {
        const options = { colorScheme, viewport: { width, height: 900 } };
        await open(options, async (page) => {
            await page.screenshot({ path: join(folder, `${colorScheme}-${width}.png`) });
            const full = { path: join(folder, `${colorScheme}-${width}-full.png`), fullPage: true };
            await page.screenshot(full);
            await checkWidth(page);
            await checkAccess(page);
            await page.screenshot({ path: join(folder, `${colorScheme}-${width}-open.png`) });
        });
    }
}
await open({}, checkKeyboard);
await open({}, checkRadius);
await open({ colorScheme: 'dark' }, checkPrint);
// Without the policy nothing runs, either: texts are escaped.
await open({ bypassCSP: true }, checkWidth);
await browser.close();
