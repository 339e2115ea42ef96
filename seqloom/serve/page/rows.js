// Rows of numbers as a person types them.

// A line a row; an empty place is a gap.
export function readRows(text) {
  const rows = text.trim().split("\n").map(line => line.split(/[,;\t]/).map(cell => {
    const bare = cell.trim();
    if (bare === "" || bare === "?" || bare.toLowerCase() === "nan") return null;
    const value = Number(bare);
    if (Number.isNaN(value)) throw new Error(`“${bare.slice(0, 20)}” is not a number: write rows of numbers, a comma between columns`);
    return value;
  }));
  if (rows.some(row => row.length !== rows[0].length)) throw new Error("the rows differ in length");
  return rows;
}

export const writeRows = rows => rows.map(row => [row].flat().map(value => value === null ? "" : String(Number(value.toPrecision(7)))).join(", ")).join("\n");
