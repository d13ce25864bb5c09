/** The form of a connection, and what a test of one found. */
import type { connectionForm as English } from "../en/connection_form.ts";
import { counter } from "../plural.ts";

const count = counter("de");

/** German. */
export const connectionForm: typeof English = {
  form: {
    nearby: "Auf diesem Rechner gefunden",
    byHand: "Ein anderer Server oder Dienst",
    presets: "Vorschläge",
    keyNeeded: "Dieser Dienst verlangt einen Schlüssel. Er wird versiegelt gespeichert und nie wieder angezeigt.",
    keyShow: "Eingabe zeigen",
    keyHide: "Eingabe verbergen",
    keyExposed:
      "Diese Adresse ist unverschlüsselt: Der Schlüssel kann unterwegs gelesen werden. Nehmen Sie https://, wenn der Server es anbietet.",
    modelOffered: (n: number) =>
      `Leer lassen, um das erste von ${
        count(n, { one: "angebotenen Modell", other: "angebotenen Modellen" })
      } zu nehmen.`,
    contextKnown: (tokens: string) => `In Token. Bleibt das Feld leer, gelten die ${tokens}, die der Server nennt.`,
    addTitle: "Verbindung hinzufügen",
    editTitle: "Verbindung bearbeiten",
    missing: "Diese Verbindung gibt es nicht",
    name: "Name",
    kind: "Art",
    url: "Adresse",
    urlHint: "Zum Beispiel http://127.0.0.1:8080; wo /v1 fehlt, wird es ergänzt.",
    key: "API-Schlüssel",
    keyHint: "Nur für Server, die einen verlangen. Er wird versiegelt gespeichert und nie wieder angezeigt.",
    keySaved: "Ein Schlüssel ist gespeichert. Lassen Sie das Feld leer, um ihn zu behalten.",
    keyMoved:
      "Der gespeicherte Schlüssel gehört zu einer anderen Adresse und geht nicht mit. Geben Sie ihn noch einmal ein, wenn die neue einen braucht.",
    keyClear: "Gespeicherten Schlüssel entfernen",
    keyCleared: "Schlüssel entfernt",
    model: "Modell",
    modelHint: "Leer lassen, um das erste zu nehmen, das der Server anbietet.",
    context: "Kontextgröße",
    contextHint: "In Token. Leer lassen, um den Server zu fragen.",
    contextBad: "Eine ganze Zahl von Token, etwa 8192",
    urlBad: "Eine Adresse, die mit http:// oder https:// beginnt",
    save: "Speichern",
    saveAndUse: "Speichern und verwenden",
    saveFailed: "Die Verbindung konnte nicht gespeichert werden",
    testFailed: "Die Prüfung war nicht möglich",
  },

  verdict: {
    good: "Die Verbindung funktioniert",
    bad: "Die Verbindung funktioniert nicht",
    reachable: "Server antwortet",
    unreachable: "Server antwortet nicht",
    authorized: "Zugang gewährt",
    unauthorized: "Zugang verweigert",
    models: (n: number) => count(n, { one: "Modell angeboten", other: "Modelle angeboten" }),
    context: (n: string) => `Kontext von ${n} Token`,
    latency: (ms: number) => `${ms} ms`,
  },
};
