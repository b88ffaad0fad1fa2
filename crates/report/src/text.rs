//! Numbers, durations and moments as people read them.

use std::time::{Duration, SystemTime};

/// A whole number with a comma between thousands.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds: three significant digits below a hundred, whole above.
#[must_use]
pub fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.2}"),
        ms if ms < 100.0 => format!("{ms:.1}"),
        ms => thousands(ms.round() as u64),
    }
}

/// A table in Markdown: its headings, a rule and its rows, a line each.
#[must_use]
pub fn markdown_table(headings: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = vec!["---".to_owned(); headings.len()];
    let rows: String = rows.map(|cells| line(&cells)).collect();
    format!("{}{}{rows}", line(headings), line(&rule))
}

/// A whole number in text with a comma between thousands; other text as it is.
#[must_use]
pub fn grouped(text: &str) -> String {
    let whole = !text.is_empty() && text.len() < 20 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| whole).map_or(text.to_owned(), thousands)
}

/// A row of bars, one a value, each in eighths of the largest.
#[must_use]
pub fn sparkline(values: impl IntoIterator<Item = f64>) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let values: Vec<f64> = values.into_iter().collect();
    let largest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bar = |value: f64| BARS[((value / largest * 8.0).round() as usize).min(8)];
    values.into_iter().map(bar).collect()
}

/// About how long something takes: `8 s`, `3 min 20 s`, `2 h 5 min`.
#[must_use]
pub fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..600 => format!("{} min {} s", seconds / 60, seconds % 60),
        600..3_600 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// The text without the characters that XML has no way to write, escaped or not: each is replaced
/// by U+FFFD.
#[must_use]
pub fn printable(text: String) -> String {
    let unwritable = |character: char| {
        matches!(character, '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}')
            || matches!(character, '\u{fffe}' | '\u{ffff}')
    };
    if text.contains(unwritable) { text.replace(unwritable, "\u{fffd}") } else { text }
}

/// A moment in universal time to the second, as in `2026-01-31 12:00:00 UTC`.
#[must_use]
pub fn utc(moment: SystemTime) -> String {
    let seconds = moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A moment after 1970 as RFC 3339 writes it, as in `2026-01-31T12:00:00Z`, with or without a part
/// of a second, and with Z or an offset such as +01:00; `None` where the text is none.
#[must_use]
pub fn moment_of(text: &str) -> Option<SystemTime> {
    let (clock, offset_s) = without_offset(text)?;
    let (day, time) = clock.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(day, '-', [4, 2, 2])?;
    let (time, part) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_part = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let part: f64 = is_part.then(|| format!("0.{part}").parse().ok())??;
    let days = days_before(year, month, day);
    let exists = date(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    let seconds = 86_400 * days + 3_600 * hour + 60 * minute + second;
    let seconds = exists.then(|| seconds.checked_add_signed(-offset_s))??;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_secs_f64(part))
}

/// The text without its offset from universal time, and that in seconds.
fn without_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let (clock, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let sign = if offset.starts_with('+') { 1 } else { -1 };
    let [hours, minutes] = numbers(offset.strip_prefix(['+', '-'])?, ':', [2, 2])?;
    let seconds = i64::try_from(3_600 * hours + 60 * minutes).ok()?;
    (hours < 24 && minutes < 60).then_some((clock, sign * seconds))
}

/// Numbers of so many digits each, with a character between.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[u64; N]> {
    let parts: Vec<&str> = text.split(between).collect();
    let fits = |(part, digits): (&&str, &usize)| {
        part.len() == *digits && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let fit = parts.len() == N && parts.iter().zip(&digits).all(fits);
    let numbers: Option<Vec<u64>> = parts.iter().map(|part| part.parse().ok()).collect();
    numbers.filter(|_| fit)?.try_into().ok()
}

/// Days from the first of January 1970 to a day of the Gregorian calendar, the inverse of
/// [`date`]; a day that does not exist comes to another one.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March, as in `date`.
    let year = year.saturating_sub(u64::from(month <= 2));
    let months = (month + 9) % 12;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * months + 2) / 5 + day;
    days.saturating_sub(719_469)
}

/// Year, month and day of the Gregorian calendar, from days since the first of January 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let first = (153 * month + 2) / 5;
    let year = year + 400 * era + u64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day - first + 1)
}

#[cfg(test)]
mod tests {
    use super::{grouped, milliseconds, moment_of, span, sparkline, thousands, utc};
    use std::time::{Duration, SystemTime};

    #[test]
    fn moments_are_in_universal_time() {
        let at = |seconds| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(at(1_772_323_199), "2026-02-28 23:59:59 UTC");
        assert_eq!(at(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }

    #[test]
    fn moments_are_read_as_they_are_written() {
        let ms = |text: &str| {
            let since = moment_of(text)?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            Some(since.as_millis())
        };
        assert_eq!(ms("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(ms("2000-02-29T00:00:00z"), Some(951_782_400_000));
        assert_eq!(ms("2026-02-28T23:59:59.25Z"), Some(1_772_323_199_250));
        assert_eq!(ms("2026-03-01T00:59:59+01:00"), Some(1_772_323_199_000));
        assert_eq!(ms("2026-02-28T18:29:59-05:30"), Some(1_772_323_199_000));
        for wrong in [
            "",
            "now",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:00:00",
            "2026-01-31",
            "2026-1-31T12:00:00Z",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00+1:00",
            "1969-12-31T23:59:59+01:00",
            "+026-01-31T12:00:00Z",
        ] {
            assert_eq!(ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans_are_as_fine_as_they_are_long() {
        let said = [0.4, 59.6, 200.0, 1_770.0, 7_500.0].map(span);
        assert_eq!(said, ["0 s", "1 min 0 s", "3 min 20 s", "30 min", "2 h 5 min"]);
    }

    #[test]
    fn figures_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!((grouped("20000"), grouped("0@5")), ("20,000".to_owned(), "0@5".to_owned()));
        assert_eq!(milliseconds(1.234), "1.23");
        assert_eq!(milliseconds(12.34), "12.3");
        assert_eq!(milliseconds(1_234.5), "1,235");
        assert_eq!(sparkline([0.0, 1.0, 2.0]), " ▄█");
        assert_eq!(sparkline([0.0, 0.0]), "  ");
    }
}
