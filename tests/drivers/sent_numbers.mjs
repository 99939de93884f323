// Sends numbers to the functions of neardup by node-postgres.
//
// Usage: sent_numbers.mjs DRIVER CONNINFO PACKAGES.
// The table `cases` has queries with {} in the place of a number, and the number. The result of
// each is stored there, and NULL for an error.
import { createRequire } from 'node:module';

const [, , , conninfo, packages] = process.argv;
const pg = createRequire(`${packages}/`)('pg');
const settings = Object.fromEntries(conninfo.split(' ').map((part) => {
    const end = part.indexOf('=');
    return [part.slice(0, end), part.slice(end + 1)];
}));
const client = new pg.Client({
    host: settings.host,
    port: Number(settings.port),
    user: settings.user,
    database: settings.dbname,
});
const numberOf = (value) => {
    const number = Number(value);
    return Number.isInteger(number) && !Number.isSafeInteger(number) ? BigInt(value) : number;
};
await client.connect();
const cases = await client.query('SELECT number, query, value FROM cases ORDER BY number');
for (const { number, query, value } of cases.rows) {
    let result;
    try {
        const text = query.replaceAll('{}', '$1');
        const found = await client.query({ text, values: [numberOf(value)], rowMode: 'array' });
        result = found.rows[0][0] ?? 'NULL';
    } catch (error) {
        if (!(error instanceof pg.DatabaseError)) {
            throw error;
        }
        continue;
    }
    await client.query('UPDATE cases SET result = $1 WHERE number = $2', [result, number]);
}
await client.end();
