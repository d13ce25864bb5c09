/** Texts of the tailnet node. */
import type { tailnet as English } from "../en/tailnet.ts";

/** German. */
export const tailnet: typeof English = {
  tailnet: {
    title: "Tailnet",
    intro:
      "Fügen Sie Parlor als Rechner zu Ihrem Tailnet hinzu. Ihre Geräte erreichen es von überall unter einem Namen, ohne offenen Port zum Internet. Tailscale auf diesem Rechner ist nicht betroffen.",
    loadFailed: "Der Tailnet-Status konnte nicht geladen werden",
    states: {
      disabled: "Aus",
      starting: "Startet",
      needs_auth: "Anmeldung erforderlich",
      running: "An",
      stopped: "Gestoppt",
      error: "Fehlgeschlagen",
    },
    name: "Rechnername",
    nameHint:
      "Buchstaben, Ziffern und Bindestriche. Das Tailnet ergänzt seine Domain und, falls der Name vergeben ist, eine Zahl.",
    nameWrong:
      "Verwenden Sie 1 bis 63 Kleinbuchstaben, Ziffern oder Bindestriche, ohne Bindestrich am Anfang oder Ende",
    turnOn: "Einschalten",
    before: "Vor dem Einschalten",
    beforeOpen:
      "Alle in Ihrem Tailnet können Parlor dann erreichen und es benutzen, bis unter der neuen Adresse der erste Passkey erstellt ist. Öffnen Sie es als Erste oder Erster und erstellen Sie einen.",
    beforeLog: "Mit HTTPS erscheint der Name in öffentlichen Zertifikatsprotokollen.",
    beforeClosed:
      "Sonst wird auf diesem Rechner nichts aus dem Tailnet erreichbar, außer UDP-Diensten auf 127.0.0.1. Um auch diese zu sperren, erlauben Sie in den Zugriffsregeln des Tailnets nur die Ports 80 und 443.",
    starting: "Der Knoten wird gestartet. Das dauert einige Sekunden, beim ersten Zertifikat bis zu einer Minute.",
    stopping: "Der Knoten wird ausgeschaltet.",
    signIn: "Beim Tailnet anmelden",
    signInText: "Melden Sie sich hier an oder scannen Sie diesen Code mit einem Gerät, das Ihr Tailnet-Konto hat.",
    signInQr: "QR-Code mit dem Anmeldelink",
    address: "Adresse",
    addressQr: "QR-Code mit der Adresse",
    copied:
      "Öffnen Sie die Adresse auf einem Gerät in Ihrem Tailnet und erstellen Sie einen Passkey. Bis dahin können alle im Tailnet Parlor benutzen.",
    plain: "Unverschlüsseltes HTTP",
    plainOpen:
      "Passkeys funktionieren unter dieser Adresse nicht, daher können alle in Ihrem Tailnet Parlor dort benutzen. Um das zu verhindern, setzen Sie pairing = „code“ und melden Sie sich mit einem Token an.",
    stopped: "Der Knoten wurde auf diesem Rechner gestoppt.",
    failed: "Der Knoten ist fehlgeschlagen",
    notOn: "Der Knoten konnte nicht eingeschaltet werden",
    again: "Erneut versuchen",
    rename: "Umbenennen",
    turnOff: "Ausschalten",
    turnOffAsk: "Tailnet-Knoten ausschalten?",
    turnOffReach: (address: string) => `Parlor ist dann unter ${address} nicht mehr erreichbar.`,
    turnOffHere: "Sie verwenden diese Adresse gerade, daher wird diese Seite nicht mehr funktionieren.",
    turnOffWipe:
      "Der Knoten wird abgemeldet, seine Schlüssel und sein Zertifikat werden gelöscht. Ihre Passkeys und Chats bleiben.",
    turnOffAgain:
      "Um ihn wieder zu verwenden, müssen Sie sich erneut anmelden. Der alte Rechner bleibt in der Liste des Tailnets, daher kann der neue eine Zahl hinter seinem Namen erhalten, bis Sie den alten dort löschen.",
    turnedOff: "Tailnet-Knoten ausgeschaltet",
  },
  phone: {
    title: "Auf dem Handy nutzen",
    intro: "Eine Adresse, die Ihr Handy erreicht, ein Code zum Scannen, und schon sind Sie angemeldet.",
    open: "Handy einrichten",
    address: "Eine Adresse für Ihr Handy",
    whyNotLocalhost: (host: string) =>
      `${host} heißt auf jedem Gerät „dieses Gerät“, ein Handy würde Parlor also bei sich selbst suchen. Es braucht eine eigene Adresse mit HTTPS, denn nur dort erlauben Browser Passkeys.`,
    whyHttps:
      "Diese Adresse hat kein HTTPS, und nur damit erlauben Browser Passkeys. Wählen Sie, wie Sie es einrichten.",
    ways: {
      tailnet: "Tailnet: Parlor von überall erreichen, ohne offene Ports und Zertifikate",
      proxy: "Ein Proxy mit Zertifikat: Ihre eigene Domain, zum Beispiel mit Caddy",
    },
    proxyText:
      "Lassen Sie einen Proxy wie Caddy mit HTTPS für Ihre Domain antworten und Anfragen an Parlor weiterleiten, und tragen Sie den Proxy in trusted_proxies ein. Geben Sie dann hier die Adresse ein. Läuft der Proxy auf diesem Rechner, öffnet sich Parlor nicht mehr unter localhost: Machen Sie unter der neuen Adresse weiter.",
    proxyAddress: "Adresse",
    proxyWrong: "Geben Sie eine Adresse ein, die mit https:// beginnt und einen Namen hat, keine IP-Adresse",
    checking: "Prüft, ob diese Adresse zu Parlor führt …",
    checks: {
      ok: "Diese Adresse führt zu Parlor, mit allem, was ein Handy braucht.",
      unresolved: "Dieser Name hat noch keine Adresse",
      unreachable: "Parlor bekommt von dieser Adresse keine Antwort",
      certificate: "Dem Zertifikat dieser Adresse wird nicht vertraut",
      host_not_allowed: "Parlor nimmt diesen Namen noch nicht an",
      other_server: "Unter dieser Adresse antwortet ein anderer Server",
      proxy_headers: "Parlor erkennt nicht, dass die Verbindung verschlüsselt ist",
      host_changed: "Der Proxy ändert den Namen",
    },
    checkHints: {
      unresolved: (host: string) =>
        `Legen Sie für ${host} einen DNS-Eintrag an, der zum Proxy führt. Neue Einträge brauchen etwas Zeit.`,
      unreachable: () =>
        "Prüfen Sie, ob der Proxy läuft und sein Port offen ist. Manche Router leiten das eigene Netz nicht zur eigenen öffentlichen Adresse; dann erreicht das Handy sie trotzdem von außen.",
      certificate: () =>
        "Auch ein Handy würde ihm nicht vertrauen. Caddy holt sich selbst ein Zertifikat, sobald der Name zu ihm führt; andere brauchen eines einer öffentlichen Stelle wie Let’s Encrypt.",
      host_not_allowed: (host: string) =>
        `Tragen Sie ${host} in der Konfiguration bei allowed_hosts ein und starten Sie Parlor neu.`,
      other_server: () => "Prüfen Sie, an welches Programm der Proxy diesen Namen weiterleitet.",
      proxy_headers: () =>
        "Der Proxy muss X-Forwarded-Proto und X-Forwarded-For senden, und seine Adresse muss in trusted_proxies stehen.",
      host_changed: (host: string) => `Der Proxy muss den Header Host unverändert weitergeben: ${host}.`,
    },
    scan: "Mit dem Handy scannen",
    waitingAddress: "Der Code erscheint hier, sobald die Adresse bereit ist.",
    scanText: "Richten Sie die Kamera des Handys auf den Code, öffnen Sie den Link und erstellen Sie einen Passkey.",
    waitingDevice: "Warten auf die Anmeldung des Handys",
    arrived: (name: string) => `${name} ist angemeldet`,
    unreachable:
      "Nichts passiert? Prüfen Sie, ob das Handy im selben Tailnet oder Netzwerk ist und unter dieser Adresse Parlor zeigt.",
  },
};
