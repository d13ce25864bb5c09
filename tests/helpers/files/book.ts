/** A generated book with facts to ask about. */
import { createSeededRandom } from "../../../services/prompts/participants.ts";

/** A question and the page that answers it. */
export interface BookQuestion {
  question: string;
  page: number;
}

const PEOPLE = ["Alma Reyes", "Bertram Holt", "Chidi Okafor", "Dagny Lund", "Edda Brandt", "Farid Aziz", "Greta Moss"];
const ROLES = ["harbor master", "botanist", "clockmaker", "surveyor", "librarian", "glassblower", "ferry captain"];
const PLACES = ["Ostrava", "the northern mill", "Kestrel Bay", "the old customs house", "Lindholm", "the salt works"];
const THINGS = [
  "copper kettle",
  "brass sextant",
  "walnut cabinet",
  "leather ledger",
  "silver whistle",
  "porcelain owl",
];
const VERBS = ["repaired", "sold", "described", "borrowed", "catalogued", "painted", "forgot", "weighed", "moved"];
const LINKS = [
  "after the flood",
  "before the harvest",
  "during the long winter",
  "on a market day",
  "at the spring fair",
];

/** Writes the pages of a book, and a question for some of them. The same for the same seed. */
export function writeBook(pageCount: number, questionCount: number, seed = "book") {
  const random = createSeededRandom(seed);
  let count = 0;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random(`${count++}`) * list.length)]!;
  const sentence = () =>
    `${pick(PEOPLE)}, the ${pick(ROLES)}, ${pick(VERBS)} a ${pick(THINGS)} in ${pick(PLACES)} ${pick(LINKS)}.`;
  const pages = Array.from({ length: pageCount }, () => Array.from({ length: 18 }, sentence).join(" "));
  const questions: BookQuestion[] = [];
  for (let n = 0; n < questionCount; n++) {
    const page = Math.floor((n + 0.5) * pageCount / questionCount);
    const year = 1700 + n * 11;
    const [thing, place, buyer] = [`${pick(THINGS)}`, pick(PLACES), `Count Vesper the ${n + 2}th`];
    pages[page] += ` In the year ${year} the ${thing} of ${place} was auctioned to ${buyer} for ${n * 37 + 90} crowns.`;
    questions.push({
      question: `Who bought the ${thing} at the auction in ${year}, and how much did it cost?`,
      page: page + 1,
    });
  }
  return { pages, questions };
}
