//! Whole plans, from a history to what is said of it.

use super::assess::{Judge, assess, assess_uniform};
use super::history::{History, Sequence};
use super::objective::Objective;
use super::options::{FitOn, Options, OptionsError};
use super::signal::SignalReading;
use super::source::{learn_plan, plan, plan_share};
use super::uniform::NamePhase;
use crate::lab::update_logs;
use crate::model::{Method, Period, Timestamp};
use crate::stats::calendar::SECOND;
use crate::stats::whole::whole;
use crate::stats::{Calendar, Update};

/// All methods that a schedule can be asked for.
fn methods() -> impl Iterator<Item = Method> {
    Method::ALL.iter().copied().filter(|method| *method != Method::Gone)
}

fn at(hours: f64) -> Timestamp {
    Timestamp(whole(hours * 3_600.0) * SECOND)
}

fn day(polls: usize) -> Options {
    Options { period: Some(Period::Day), polls, ..Options::default() }
}

#[test]
fn the_papers_source_with_two_polls() {
    let history = update_logs::datis_like(24 * 60, 1);
    let options = Options { period: Some(Period::Hour), polls: 2, min_gap_s: 0, grain_s: 60, ..Options::default() };
    for method in [Method::Optimal, Method::Theoretical, Method::Uniform] {
        let planned = plan(&history, &Options { method, ..options.clone() }).unwrap();
        let recall = planned.held_out.expected.recall.unwrap();
        assert!(recall > 0.95, "{method:?}: {recall}");
    }
    let planned = plan(&history, &options).unwrap();
    assert!((0.5..0.7).contains(&planned.uniform.recall.unwrap()), "{:?}", planned.uniform);
    assert!(planned.gain.unwrap().is_shown());
    assert_eq!(planned.polls_for_90_percent, Some(2));
}

#[test]
fn four_an_hour_within_fifteen_minutes() {
    let history = update_logs::quarter_bursts(24 * 60, 1);
    let options = Options { period: Some(Period::Hour), polls: 4, min_gap_s: 0, grain_s: 60, ..Options::default() };
    for method in [Method::Optimal, Method::Theoretical] {
        let planned = plan(&history, &Options { method, ..options.clone() }).unwrap();
        assert!(planned.held_out.expected.recall.unwrap() > 0.95, "{method:?} {:?}", planned.held_out);
        assert!((planned.uniform.recall.unwrap() - 0.5).abs() < 0.02);
    }
}

#[test]
fn sources_with_little_to_learn_from_are_uniform_and_say_so() {
    for (times, said) in [(vec![], "no update is known"), (vec![at(5.0)], "one update is known")] {
        for period in [None, Some(Period::Week)] {
            let history = History::of_moments("s", &times);
            let planned = plan(&history, &Options { period, ..Options::default() }).unwrap();
            assert_eq!(planned.schedule.method, Method::Uniform);
            assert_eq!(planned.schedule.poll_times.len(), 4);
            assert!(planned.notes[0].contains(said), "{:?}", planned.notes);
            assert_eq!(planned.held_out.expected.recall, None);
        }
    }
}

#[test]
fn what_is_learned_from_nothing_is_said_without_learning() {
    let history = History::new("http://h0.test/none0", Vec::new());
    let berlin = Calendar::new(jiff::tz::TimeZone::get("Europe/Berlin").unwrap());
    for period in [None, Some(Period::Hour), Some(Period::Day), Some(Period::Week), Some(Period::Month)] {
        for method in methods() {
            for (polls, fit) in [(1, FitOn::All), (4, FitOn::Train), (5_000, FitOn::All)] {
                let options = Options {
                    period,
                    method,
                    polls,
                    fit,
                    signal: true,
                    calendar: berlin.clone(),
                    ..Options::default()
                };
                let slow = learn_plan(&history, &NamePhase::of(&history.source), &options);
                assert_eq!(plan(&history, &options).unwrap(), slow);
                assert!(slow.curve.is_empty());
            }
        }
    }
    let share = plan_share(&history, &NamePhase::of(&history.source), &Options::default(), Period::Day, 0);
    assert_eq!(share, learn_plan(&history, &NamePhase::of(&history.source), &Options { polls: 0, ..day(1) }));
    // As recorded when curves were still made.
    let quarters = Options { grain_s: 900, ..Options::default() };
    let times = |period| plan(&history, &Options { period, ..quarters.clone() }).unwrap().schedule.poll_times;
    assert_eq!(times(None), [2_700, 24_300, 45_900, 67_500]);
    assert_eq!(times(Some(Period::Week)), [110_700, 261_900, 413_100, 564_300]);
    let crowded = plan(&history, &day(200)).unwrap();
    assert_eq!(crowded.schedule.poll_times, (0..144).map(|i| 300 + i * 600).collect::<Vec<i64>>());
    let note = "200 polls do not fit into a day at a grain of 300 s and a minimum gap of 600 s: 144 used";
    assert_eq!(crowded.notes, ["no update is known: polls are uniform", note]);
}

#[test]
fn without_a_held_out_version_there_is_no_curve() {
    // One update: its version has not ended.
    let planned = plan(&History::of_moments("s", &[at(5.0)]), &day(2)).unwrap();
    assert_eq!((planned.test_updates, planned.curve.len(), planned.uniform), (1, 0, Default::default()));
    assert_eq!(planned.schedule.poll_times, [5 * 3_600, 17 * 3_600], "the phase is learned all the same");
}

#[test]
fn where_no_gain_is_shown_note_and_method_say_so() {
    let history = update_logs::poisson(600, 7.0, 3);
    let planned = plan(&history, &day(3)).unwrap();
    assert_eq!((planned.schedule.period, planned.schedule.method), (Period::Day, Method::Uniform));
    assert!(
        planned.notes[0].contains("no gain") && planned.notes[0].ends_with("polls are uniform"),
        "{:?}",
        planned.notes
    );
    let gaps: Vec<i64> = planned.schedule.poll_times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [28_800; 2]);
    let planned = plan(&history, &Options { period: None, ..day(3) }).unwrap();
    assert_eq!(planned.schedule.method, Method::Uniform);
}

#[test]
fn more_polls_than_slots_are_cut() {
    let history = update_logs::datis_like(24 * 20, 1);
    let options = Options { period: Some(Period::Hour), polls: 50, ..Options::default() };
    let planned = plan(&history, &options).unwrap();
    assert_eq!(planned.schedule.poll_times.len(), 6);
    assert!(planned.notes.iter().any(|n| n.contains("do not fit")));
    assert!(planned.schedule.poll_times.windows(2).all(|p| p[1] - p[0] >= 600));
}

#[test]
fn fit_train_delivers_what_was_judged() {
    let history = update_logs::datis_like(24 * 40, 2);
    let options = Options { fit: FitOn::Train, ..day(6) };
    let planned = plan(&history, &options).unwrap();
    let (_, test) = history.split(0.3);
    let again = assess(&test, &Calendar::utc(), Period::Day, &planned.schedule.poll_times);
    assert_eq!(again, planned.held_out);
    assert_eq!(planned.train_updates + planned.test_updates, planned.updates);
}

#[test]
fn intervals_give_expectation_and_bounds() {
    // Daily change at 09:20, hourly crawl.
    let updates = (0..200).map(|d| Update::within(at(f64::from(d) * 24.0 + 9.0), at(f64::from(d) * 24.0 + 10.0)));
    let history = History::new("s", vec![Sequence::new(updates.collect()).0]);
    let planned = plan(&history, &day(1)).unwrap();
    let (low, high) = planned.held_out.recall_bounds.unwrap();
    let expected = planned.held_out.expected.recall.unwrap();
    assert!(low <= expected && expected <= high && expected > 0.95, "{:?}", planned.held_out);
    let (low, high) = planned.held_out.freshness_bounds.unwrap();
    let expected = planned.held_out.expected.freshness.unwrap();
    assert!(low <= expected + 1e-9 && expected <= high + 1e-9 && expected > 0.9, "{:?}", planned.held_out);
    // A poll soon after ten sees it.
    let time = planned.schedule.poll_times[0];
    assert!((34_200..=37_800).contains(&time), "{time}");
    // A daily crawl leaves the hour open.
    let updates = (0..200).map(|d| Update::within(at(f64::from(d) * 24.0 + 3.0), at(f64::from(d) * 24.0 + 27.0)));
    let history = History::new("s", vec![Sequence::new(updates.collect()).0]);
    let planned = plan(&history, &day(4)).unwrap();
    assert!(planned.notes.iter().any(|n| n.contains("too wide")), "{:?}", planned.notes);
    let gaps: Vec<i64> = planned.schedule.poll_times.windows(2).map(|p| p[1] - p[0]).collect();
    assert_eq!(gaps, [21_600; 3]);
    // At a phase of its own.
    let other = plan(&History { source: "t".to_owned(), ..history }, &day(4)).unwrap();
    assert_ne!(other.schedule.poll_times, planned.schedule.poll_times);
}

#[test]
fn local_time_follows_the_clock_through_summer() {
    let zone = jiff::tz::TimeZone::get("Europe/Berlin").unwrap();
    let calendar = Calendar::new(zone.clone());
    // Published at 08:00 local time for two years.
    let start = jiff::civil::date(2022, 1, 1);
    let moment = |d: i64| {
        let date = start + jiff::Span::new().days(d);
        Timestamp::from_civil(date.at(8, 0, 0, 0), &zone).unwrap()
    };
    let history = History::of_moments("s", &(0..730).map(moment).collect::<Vec<_>>());
    let planned = plan(&history, &Options { calendar, ..day(1) }).unwrap();
    assert_eq!(planned.schedule.poll_times, [8 * 3_600]);
    assert_eq!(planned.schedule.time_zone, "Europe/Berlin");
    assert!(planned.held_out.expected.freshness.unwrap() > 0.99);
    // In UTC the hour moves, and so either summer or winter is stale for an hour.
    let planned = plan(&history, &day(1)).unwrap();
    assert!(planned.held_out.expected.freshness.unwrap() < 0.99);
}

#[test]
fn many_urls_are_one_source() {
    let url = |shift: f64| {
        let updates = (0..150).map(|d| Update::at(at(f64::from(d) * 24.0 + 9.0 + shift)));
        Sequence::new(updates.collect()).0
    };
    let history = History::new("host", vec![url(0.0), url(0.5), url(1.0)]);
    let planned = plan(&history, &day(1)).unwrap();
    assert_eq!(planned.held_out.expected.recall, Some(1.0));
    // One poll at the last of them is freshest for all.
    assert_eq!(planned.schedule.poll_times, [10 * 3_600]);
    assert_eq!(planned.updates, 450);
}

#[test]
fn unusable_options_are_refused() {
    let refuse = |options: Options| plan(&History::default(), &options).unwrap_err();
    assert!(matches!(refuse(Options { grain_s: 420, ..Options::default() }), OptionsError::Grain(420, "an hour")));
    assert!(matches!(refuse(Options { grain_s: 30, ..Options::default() }), OptionsError::Grain(..)));
    assert_eq!(refuse(Options { polls: 0, ..Options::default() }), OptionsError::Polls);
    assert_eq!(refuse(Options { holdout: 1.0, ..Options::default() }), OptionsError::Holdout(1.0));
    let objective = Objective { recall: -1.0, ..Objective::default() };
    assert_eq!(refuse(Options { objective, ..Options::default() }), OptionsError::Objective);
}

#[test]
fn a_comb_is_pointed_out() {
    let history =
        History::of_moments("s", &(0..300).map(|i| at(f64::from(i * 3 % 701) + 17.0 / 60.0)).collect::<Vec<_>>());
    let planned = plan(&history, &day(4)).unwrap();
    assert!(planned.notes.iter().any(|n| n.contains("same minute of every 60")), "{:?}", planned.notes);
}

#[test]
fn a_signal_is_measured_when_asked_for() {
    let mut history = update_logs::poisson(900, 7.0, 3);
    for (i, update) in history.sequences[0].updates.iter_mut().enumerate() {
        update.signal = Some(i % 3 == 0);
    }
    assert_eq!(plan(&history, &day(3)).unwrap().signal, None);
    let planned = plan(&history, &Options { signal: true, ..day(3) }).unwrap();
    assert!(!planned.signal.unwrap().kept, "{:?}", planned.signal);
    assert!(crate::report::schedules::tables::in_full(&[planned]).contains("not kept"));
}

/// What a schedule is worth on a stretch that it has never seen, with or without its two timetables.
fn worth(planned: &super::source::SourcePlan, later: &History, calendar: &Calendar) -> f64 {
    let judge = Judge::new(later);
    let schedule = &planned.schedule;
    let times = schedule.poll_times.as_slice();
    let two = |on: &[i64], off: &[i64]| {
        let reading = planned.signal.expect("it was measured").reading;
        judge.switched(calendar, schedule.period, (on, off), reading).0
    };
    let metrics = match (&planned.other_poll_times, planned.shows) {
        (Some(other), Some(true)) => two(times, other),
        (Some(other), _) => two(other, times),
        _ => judge.expected(calendar, schedule.period, times),
    };
    super::period_choice::value(&metrics, Objective::default()).unwrap()
}

#[test]
fn breaking_news_gains_by_two_timetables() {
    for seed in 1..4 {
        let (learned, later) = update_logs::cnn_like(240, seed).split(0.5);
        let one = plan(&learned, &day(24)).unwrap();
        let two = plan(&learned, &Options { signal: true, ..day(24) }).unwrap();
        assert!(two.other_poll_times.is_some() && two.signal.unwrap().multiplier > 4.0, "{:?}", two.signal);
        let (one, two) = (worth(&one, &later, &Calendar::utc()), worth(&two, &later, &Calendar::utc()));
        assert!(two > one + 0.02, "{seed}: {one} {two}");
    }
}

#[test]
fn chance_is_not_hurt_by_a_signal() {
    let (mut switched, mut sum) = (0, 0.0);
    for seed in 0..30u64 {
        let mut history = update_logs::poisson(600, 5.0, seed);
        let mut random = crate::model::Rng::new(seed + 99);
        history.sequences[0].updates.iter_mut().for_each(|update| update.signal = Some(random.index(3) == 0));
        let (learned, later) = history.split(0.5);
        let one = plan(&learned, &day(4)).unwrap();
        let two = plan(&learned, &Options { signal: true, ..day(4) }).unwrap();
        switched += usize::from(two.other_poll_times.is_some());
        let difference = worth(&two, &later, &Calendar::utc()) - worth(&one, &later, &Calendar::utc());
        assert!(difference > -0.03, "{seed}: {difference}");
        sum += difference;
    }
    assert!(switched <= 2 && sum > -0.05, "{switched} of 30, {sum}");
}

/// Of a source that is polled as one, told apart by whether pages rest with the signal on them or others change meanwhile.
#[test]
fn breaking_news_of_several_pages_gains_by_two_timetables() {
    let readings = [SignalReading::Any, SignalReading::Newest];
    for seed in 1..4 {
        let groups = [update_logs::front_page(240, 4, 12.0, seed), update_logs::stories(240, seed)];
        for (group, reading) in groups.into_iter().zip(readings) {
            let (learned, later) = group.split(0.5);
            let one = plan(&learned, &day(24)).unwrap();
            let two = plan(&learned, &Options { signal: true, ..day(24) }).unwrap();
            let signal = two.signal.unwrap();
            assert!(two.other_poll_times.is_some(), "{} {seed}: {signal:?}", group.source);
            assert_eq!(signal.reading, reading, "{} {seed}: {signal:?}", group.source);
            let words = if reading == SignalReading::Any { "on any page" } else { "on the pages that changed last" };
            assert!(two.notes.iter().any(|note| note.contains(words)), "{:?}", two.notes);
            let (one, two) = (worth(&one, &later, &Calendar::utc()), worth(&two, &later, &Calendar::utc()));
            assert!(two > one + 0.02, "{} {seed}: {one} {two}", group.source);
        }
    }
}

/// Signals by chance, and signals that tell a page that changes often from one that does not.
#[test]
fn chance_on_several_pages_is_not_hurt_by_a_signal() {
    for tells_page in [false, true] {
        let (mut switched, mut sum) = (0, 0.0);
        for seed in 0..30u64 {
            let mut random = crate::model::Rng::new(seed + 99);
            let pages = (0..2 + seed % 4).map(|page| {
                let often = page == 0;
                let (updates, hours) = if often { (400, 8.0) } else { (100, 32.0) };
                let mut page = update_logs::poisson(updates, hours, seed * 10 + page).sequences.remove(0);
                for update in &mut page.updates {
                    update.signal = Some(if tells_page { often } else { random.index(3) == 0 });
                }
                page
            });
            let (learned, later) = History::new("group", pages.collect()).split(0.5);
            let one = plan(&learned, &day(4)).unwrap();
            let two = plan(&learned, &Options { signal: true, ..day(4) }).unwrap();
            switched += usize::from(two.other_poll_times.is_some());
            let difference = worth(&two, &later, &Calendar::utc()) - worth(&one, &later, &Calendar::utc());
            assert!(difference > -0.03, "{seed}: {difference}");
            sum += difference;
        }
        assert!(switched <= 2 && sum > -0.05, "{switched} of 30, {sum}");
    }
}

#[test]
fn polls_of_two_timetables_that_are_moved_are_judged_with_the_other() {
    let (history, _) = update_logs::cnn_like(240, 1).split(0.5);
    let (phase, options) = (NamePhase::of(&history.source), Options { signal: true, ..day(24) });
    let mut planned = plan(&history, &options).unwrap();
    let (before, times) = (planned.held_out, planned.schedule.poll_times.clone());
    assert!(planned.other_poll_times.is_some());
    // To where they are.
    planned.move_polls(&history, &phase, &options, &times.iter().copied().map(Some).collect::<Vec<_>>());
    assert_eq!(planned.held_out, before);
    // None is left of those in force.
    planned.move_polls(&history, &phase, &options, &vec![None; times.len()]);
    assert!(planned.held_out.expected.recall < before.expected.recall);
}

#[test]
fn no_poll_at_all_sees_nothing() {
    let history = update_logs::datis_like(200, 1);
    let planned = plan_share(&history, &NamePhase::of(&history.source), &Options::default(), Period::Hour, 0);
    assert!(planned.schedule.poll_times.is_empty());
    assert_eq!(planned.held_out.expected.recall, Some(0.0));
}

#[test]
fn ties_go_to_freshness() {
    let history = update_logs::datis_like(24 * 60, 1);
    let options = Options { period: Some(Period::Hour), polls: 2, min_gap_s: 0, grain_s: 60, ..Options::default() };
    let found = |objective, method| {
        plan(&history, &Options { objective, method, ..options.clone() }).unwrap().held_out.expected
    };
    let (recall, theoretical) =
        (found(Objective::RECALL, Method::Optimal), found(Objective::RECALL, Method::Theoretical));
    assert!(recall.recall >= theoretical.recall, "{recall:?} {theoretical:?}");
    assert!(recall.freshness.unwrap() > theoretical.freshness.unwrap() - 0.01, "{recall:?} {theoretical:?}");
}

#[test]
fn comparisons_have_as_many_polls() {
    // The theoretical method has use for two polls an hour here, of six.
    let history = update_logs::datis_like(24 * 60, 1);
    let options = Options {
        period: Some(Period::Hour),
        polls: 6,
        method: Method::Theoretical,
        min_gap_s: 0,
        grain_s: 60,
        fit: FitOn::Train,
        ..Options::default()
    };
    let planned = plan(&history, &options).unwrap();
    let used = planned.schedule.poll_times.len();
    assert!(used < 6, "{planned:?}");
    let (_, test) = history.split(0.3);
    assert_eq!(planned.uniform, assess_uniform(&test, Period::Hour, used));
    // Where intervals are known, a version is one version.
    let crawled: Vec<Update> =
        (0..40).map(|d| Update::within(at(f64::from(d) * 24.0), at(f64::from(d) * 24.0 + 8.0))).collect();
    let crawled = History::new("s", vec![Sequence::new(crawled).0]);
    assert_eq!(assess_uniform(&crawled, Period::Day, 2).versions, 39);
    assert_eq!(assess(&crawled, &Calendar::utc(), Period::Day, &[0]).expected.versions, 39);
    // A day of the month that only seven months have.
    let daily = History::of_moments("s", &(0..730).map(|d| at(f64::from(d) * 24.0)).collect::<Vec<_>>());
    let judge = Judge::new(&daily);
    let (last, first) = (judge.uniform(Period::Month, &[30 * 86_400]), judge.uniform(Period::Month, &[0]));
    assert!((last.recall.unwrap() / first.recall.unwrap() - 7.0 / 12.0).abs() < 1e-9);
}

#[test]
fn polls_are_called_even_only_where_they_are() {
    // Too wide for a day's phases.
    let updates = (0..60).map(|d| Update::within(at(f64::from(d) * 48.0), at(f64::from(d) * 48.0 + 30.0)));
    let history = History::new("s", vec![Sequence::new(updates.collect()).0]);
    for method in methods() {
        let planned = plan(&history, &Options { method, ..day(5) }).unwrap();
        let times = &planned.schedule.poll_times;
        let gaps: Vec<i64> =
            (0..times.len()).map(|i| (times[(i + 1) % times.len()] - times[i]).rem_euclid(86_400)).collect();
        let even = gaps.iter().max().unwrap() - gaps.iter().min().unwrap() <= 300;
        assert!(even || !planned.notes.iter().any(|note| note.ends_with("polls are even")), "{planned:?}");
    }
}

#[test]
fn figures_are_of_the_polls_that_are_left() {
    let history = History::of_moments("s", &(0..200).map(|d| at(f64::from(d) * 24.0 + 9.0)).collect::<Vec<_>>());
    let phase = NamePhase::of("s");
    for fit in FitOn::ALL {
        let options = Options { fit, ..day(1) };
        let mut planned = plan(&history, &options).unwrap();
        assert_eq!(planned.schedule.poll_times, [9 * 3_600]);
        assert!(planned.held_out.expected.freshness.unwrap() > 0.99);
        planned.move_polls(&history, &phase, &options, &[Some(21 * 3_600)]);
        let moved = planned.held_out.expected;
        assert_eq!((planned.schedule.poll_times.as_slice(), moved.recall), (&[21 * 3_600][..], Some(1.0)));
        assert!((moved.freshness.unwrap() - 0.5).abs() < 0.01, "{moved:?}");
        let mut planned = plan(&history, &options).unwrap();
        planned.move_polls(&history, &phase, &options, &[None]);
        assert_eq!((planned.held_out.expected.recall, planned.uniform.recall), (Some(0.0), Some(0.0)));
        assert!(planned.notes.iter().any(|note| note.ends_with("1 of 1 dropped")), "{:?}", planned.notes);
    }
}
