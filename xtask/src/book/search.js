// mdBook's search index has words only. This finds operators such as <~>: a query with a part
// without letters and digits returns the sections that contain all its parts, headings first.
(() => {
    const partsOf = (query) => query.toLowerCase().split(/\s+/).filter(Boolean);
    const isOperator = (part) => !/[\p{L}\p{N}]/u.test(part);
    const hasOperator = (query) => partsOf(query).some(isOperator);
    const searchWords = elasticlunr.Index.prototype.search;
    elasticlunr.Index.prototype.search = function search(query, options) {
        if (!hasOperator(query)) {
            return searchWords.call(this, query, options);
        }
        const parts = partsOf(query);
        const operators = parts.filter(isOperator);
        const count = (text) => operators.reduce((sum, it) => sum + text.split(it).length - 1, 0);
        const found = [];
        for (const doc of Object.values(this.documentStore.docs)) {
            const [title, body] = [doc.title.toLowerCase(), doc.body.toLowerCase()];
            if (parts.every((part) => title.includes(part) || body.includes(part))) {
                found.push({ ref: doc.id, doc, score: 100 * count(title) + count(body) });
            }
        }
        return found.sort((a, b) => b.score - a.score);
    };
    // mdBook may have searched for the query of the address before this script was loaded. It does
    // not search for the same query again, so another query precedes the repetition.
    const bar = document.getElementById('mdbook-searchbar');
    if (bar && hasOperator(bar.value)) {
        for (const query of ['-', bar.value]) {
            bar.value = query;
            bar.dispatchEvent(new Event('keyup'));
        }
    }
})();
