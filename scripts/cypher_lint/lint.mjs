// Lints Cypher with Neo4j's own language support, as Cypher 5 (5.26) and as Cypher 25 (current releases).
// Usage: node lint.mjs FILE…     prints file:line: message for each finding; exit code 1 if there is one.
import { readFileSync } from "node:fs";
import { lintCypherQuery, testData } from "@neo4j-cypher/language-support";

const LANGUAGES = ["CYPHER 5", "CYPHER 25"];
const NOT_ON_AN_ORDINARY_SERVER = /^(apoc|gds|genai)\./;

// The language support comes with the functions and procedures of a server that has all plugins.
function ordinary(byLanguage) {
  const keep = (known) =>
    Object.fromEntries(Object.entries(known).filter(([name]) => !NOT_ON_AN_ORDINARY_SERVER.test(name)));
  return Object.fromEntries(Object.entries(byLanguage).map(([language, known]) => [language, keep(known)]));
}

const functions = ordinary(testData.mockSchema.functions);
const procedures = ordinary(testData.mockSchema.procedures);

// The statements of a file with the line on which each begins: named queries, or the whole file.
function queriesOf(text) {
  const starts = [...text.matchAll(/^\/\/ name: \w+$/gm)].map((match) => match.index);
  const bounds = [...starts, text.length];
  const parts = starts.length ? starts.map((start, i) => [start, bounds[i + 1]]) : [[0, text.length]];
  return parts.map(([start, end]) => ({
    text: text.slice(start, end),
    line: text.slice(0, start).split("\n").length,
  }));
}

function parametersOf(query) {
  return Object.fromEntries([...query.matchAll(/\$(\w+)/g)].map((match) => [match[1], 1]));
}

function findings(query) {
  const named = /^CYPHER (5|25)$/m.exec(query.text)?.[0];
  const found = new Map();
  for (const language of named ? [named] : LANGUAGES) {
    const schema = { functions, procedures, parameters: parametersOf(query.text), defaultLanguage: language };
    for (const { range, message } of lintCypherQuery(query.text, schema).diagnostics) {
      const line = query.line + range.start.line;
      const finding = `${line}: ${message.split("\n")[0]}`;
      found.set(finding, [...(found.get(finding) ?? []), language]);
    }
  }
  return [...found].map(([finding, languages]) => `${finding} (${languages.join(", ")})`);
}

let failed = false;
for (const file of process.argv.slice(2)) {
  for (const query of queriesOf(readFileSync(file, "utf8"))) {
    for (const finding of findings(query)) {
      console.log(`${file}:${finding}`);
      failed = true;
    }
  }
}
process.exit(failed ? 1 : 0);
