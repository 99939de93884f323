// Sends calls of the functions of neardup by node-postgres.
//
// Usage: sent_calls.mjs CONNINFO PACKAGES. The table `cases` has queries with $1 and so on, and the
// values: text, or numbers as text. The result of each call is stored there, and NULL for an error.
import { createRequire } from 'node:module';

const [, , conninfo, packages] = process.argv;
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
const cases = await client.query('SELECT number, query, kinds, sent FROM cases ORDER BY number');
for (const { number, query, kinds, sent } of cases.rows) {
    let result;
    try {
        const values = sent.map((text, i) => (kinds[i] === 'text' ? text : numberOf(text)));
        const found = await client.query({ text: query, values, rowMode: 'array' });
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
